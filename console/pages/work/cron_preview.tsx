import { useEffect, useState } from "preact/hooks";
import { api, ask } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { now } from "../../live/clock.ts";
import { timeFormat, untilText } from "../../parts/format.ts";
import { RefusalNotice } from "../../parts/notice.tsx";

const TYPING_MS = 300;

/** The next times of a cron expression on the clock of its zone, and what daylight saving does to them (contract 15). */
export function Preview({ cron, zone, count = 5 }: { cron: string; zone: string; count?: number }) {
  const [asked, setAsked] = useState({ cron, zone });
  useEffect(() => {
    const timer = setTimeout(() => setAsked({ cron, zone }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [cron, zone]);
  const read = useResource(`${asked.cron}\n${asked.zone}`, async (signal) => {
    if (asked.cron.trim() === "") return [];
    const query = { cron: asked.cron, time_zone: asked.zone, count };
    return await ask(api.GET("/api/schedules/preview", { params: { query }, signal }));
  });
  if (read.data === undefined) return <RefusalNotice refusal={read.refusal} />;
  if (read.data.length === 0) return null;
  return (
    <ol class="preview" aria-label="Next times">
      {read.data.map(({ at, local, note }) => (
        <li key={at}>
          <span class="number">{localText(local)}</span> <span class="quiet">{untilText(at, now.value)}</span>
          {note !== "" && <span class="hint">{note}</span>}
        </li>
      ))}
    </ol>
  );
}

// The zone of the schedule may be another than the reader's: what stands on its clock is shown as it stands there.
const dayThere = timeFormat({
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  timeZone: "UTC",
});

function localText(local: string): string {
  return `${dayThere(Date.parse(`${local.slice(0, 16)}Z`))}, ${local.slice(11, 16)}`;
}
