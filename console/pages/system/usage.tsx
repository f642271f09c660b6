import { Link } from "wouter-preact";
import { useAddress } from "../../live/address.ts";
import { api, ask, type Schemas } from "../../live/api.ts";
import { secondNow } from "../../live/clock.ts";
import { useResource } from "../../live/resource.ts";
import { Choice } from "../../parts/field.tsx";
import { costText, countText } from "../../parts/format.ts";
import { Heading } from "../../parts/page.tsx";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";
import { Charts } from "./charts.tsx";
import { SystemTabs } from "./system_tabs.tsx";

type Row = Schemas["UsageRow"];
type Group = "worker" | "department" | "engine" | "day" | "conversation";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
// How far back, and in which steps the charts go.
const SPANS: Record<string, [sinceMs: number, stepMs: number, words: string]> = {
  "": [DAY_MS, HOUR_MS, "Last 24 hours"],
  week: [7 * DAY_MS, 6 * HOUR_MS, "Last 7 days"],
  month: [30 * DAY_MS, DAY_MS, "Last 30 days"],
};
const GROUPS = [["", "By worker"], ["department", "By department"], ["engine", "By engine"], [
  "day",
  "By day",
], [
  "conversation",
  "By conversation",
]] as const;

const TITLES: Record<string, string> = {
  department: "Department",
  engine: "Engine",
  day: "Day",
  conversation: "Conversation",
};

/** What runs used: over time as charts, and added up by worker, department, engine, day or conversation (contract 17). */
export function UsagePage() {
  const [{ span, by }, change] = useAddress("span", "by");
  const [sinceMs, stepMs] = SPANS[span] ?? [DAY_MS, HOUR_MS];
  const ended = ({ kind }: { kind: string }) => /^execution\.(completed|failed)$/.test(kind);
  const rows = useResource<Row[]>(`usage ${span} ${by}`, (signal) => {
    const query = { since: secondNow.value - sinceMs, by: (by || "worker") as Group };
    return ask(api.GET("/api/usage", { params: { query }, signal }));
  }, ended);
  return (
    <>
      <Heading title="System" />
      <SystemTabs current="/console/system/usage" />
      <div class="filters">
        <Choice
          bare
          label="Time"
          value={span}
          onChange={(value) => change({ span: value })}
          options={Object.entries(SPANS).map(([key, [, , words]]) => [key, words] as const)}
        />
        <Choice
          bare
          label="Added up"
          value={by}
          onChange={(value) => change({ by: value })}
          options={GROUPS}
        />
      </div>
      <div class="scrolled">
        <Charts sinceMs={sinceMs} stepMs={stepMs} />
        {rows.data === undefined
          ? <Waiting refusal={rows.refusal} />
          : <UsageRows rows={rows.data} by={by} />}
      </div>
    </>
  );
}

function UsageRows({ rows, by }: { rows: Row[]; by: string }) {
  if (rows.length === 0) return <Empty title="Nothing has run in this time." />;
  const shown = (value: number | null, text: (value: number) => string) => value === null ? "–" : text(value);
  return (
    <section>
      <div class="table-box" tabIndex={0} role="region" aria-label="What runs used">
        <table>
          <thead>
            <tr>
              <th scope="col">{TITLES[by] ?? "Worker"}</th>
              <th scope="col" class="number">Runs</th>
              <th scope="col" class="number">Failed</th>
              <th scope="col" class="number">Tokens in</th>
              <th scope="col" class="number">Tokens out</th>
              <th scope="col" class="number">Cost, estimated</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.key}>
                <td>
                  <RowName row={row} by={by} />
                </td>
                <td class="number">{countText(row.executions)}</td>
                <td class="number">{countText(row.failed)}</td>
                <td class="number">{shown(row.input_tokens, countText)}</td>
                <td class="number">{shown(row.output_tokens, countText)}</td>
                <td class="number">{shown(row.cost_usd, costText)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function RowName({ row, by }: { row: Row; by: string }) {
  if (by === "conversation") return <ConversationLink sessionKey={row.key} />;
  if (by === "") return <Link href={`/console/workers/${row.key}`}>{row.name || "a deleted worker"}</Link>;
  return <>{row.name || row.key}</>;
}
