import { useEffect, useState } from "preact/hooks";
import { api, load } from "../../live/api.ts";
import { now } from "../../live/clock.ts";
import { useResource } from "../../live/resource.ts";
import { createTimeFormat, formatUntil, FULL_DATE } from "../../parts/format.ts";
import { ErrorNotice } from "../../parts/notice.tsx";

const TYPING_MS = 300;
const TIMES = 5;

/** The next times of a cron expression in its zone, with notes about daylight saving time. */
export function CronPreview({ cron, zone }: { cron: string; zone: string }) {
  const [typed, setTyped] = useState({ cron, zone });
  useEffect(() => {
    const timer = setTimeout(() => setTyped({ cron, zone }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [cron, zone]);
  const read = useResource(`${typed.cron}\n${typed.zone}`, async (signal) => {
    if (typed.cron.trim() === "") return [];
    const query = { cron: typed.cron, time_zone: typed.zone, count: TIMES };
    return await load(api.GET("/api/schedules/preview", { params: { query }, signal }));
  });
  if (read.data === undefined) return <ErrorNotice error={read.error} />;
  if (read.data.length === 0) return null;
  return (
    <ol class="preview" aria-label="Upcoming">
      {read.data.map(({ at, local, note }) => (
        <li key={at}>
          <span class="number">{formatLocal(local)}</span>{" "}
          <span class="quiet">{formatUntil(at, now.value)}</span>
          {note !== "" && <span class="hint">{note}</span>}
        </li>
      ))}
    </ol>
  );
}

// The zone of the schedule may differ from the browser's, so the text of its local time is formatted as UTC.
const formatDate = createTimeFormat({ ...FULL_DATE, timeZone: "UTC" });

function formatLocal(local: string): string {
  return `${formatDate(Date.parse(`${local.slice(0, 16)}Z`))}, ${local.slice(11, 16)}`;
}
