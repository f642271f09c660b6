import { Link } from "wouter-preact";
import { useAddress } from "../../live/address.ts";
import { api, load, type operations, type Schemas } from "../../live/api.ts";
import { secondNow } from "../../live/clock.ts";
import { useResource } from "../../live/resource.ts";
import { FilterBar } from "../../parts/listing.tsx";
import { Empty, LoadState } from "../../parts/notice.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";
import { Charts } from "./charts.tsx";
import { CostsHead } from "../workers/costs_head.tsx";
import { UsageTable } from "./usage_table.tsx";

type Group = NonNullable<NonNullable<operations["usage.list"]["parameters"]["query"]>["by"]>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
// Several days are calendar days, as on the page of the costs and in `svc ctl usage --days`.
const SPANS: Record<string, [sinceMs: number, stepMs: number, label: string, days?: number]> = {
  "": [DAY_MS, HOUR_MS, "Last 24 hours"],
  week: [7 * DAY_MS, 6 * HOUR_MS, "Last 7 days", 7],
  month: [30 * DAY_MS, DAY_MS, "Last 30 days", 30],
};
const GROUPS: Record<Group, string> = {
  worker: "Worker",
  department: "Department",
  engine: "Engine",
  day: "Day",
  conversation: "Conversation",
};

export function Page() {
  const [values, change] = useAddress("span", "by");
  const { span } = values;
  const by = values.by in GROUPS ? values.by as Group : "worker";
  const [sinceMs, stepMs, , days] = SPANS[span] ?? [DAY_MS, HOUR_MS];
  const rows = useResource(`usage ${span} ${by}`, (signal) => {
    const query = days === undefined ? { since: secondNow.value - sinceMs, by } : { days, by };
    return load(api.GET("/api/usage", { params: { query }, signal }));
  }, /^execution\.(completed|failed)$/);
  return (
    <>
      <CostsHead current="/console/system/usage" />
      <FilterBar
        filters={[
          {
            name: "span",
            label: "Time range",
            options: Object.entries(SPANS).map(([key, [, , label]]) => [key, label] as const),
          },
          {
            name: "by",
            label: "Grouping",
            options: Object.entries(GROUPS).map(([key, label]) =>
              [key, `By ${label.toLowerCase()}`] as const
            ),
          },
        ]}
        values={{ span, by }}
        change={(next) => change(next.by === "worker" ? { by: "" } : next)}
      />
      <div class="scrolled">
        <Charts sinceMs={sinceMs} stepMs={stepMs} />
        {rows.data === undefined
          ? <LoadState error={rows.error} />
          : rows.data.length === 0
          ? <Empty title="No runs in this time range." />
          : (
            <UsageTable
              label="Usage"
              group={GROUPS[by]}
              rows={rows.data}
              name={(row) => <RowName row={row} by={by} />}
            />
          )}
      </div>
    </>
  );
}

function RowName({ row: { key, name }, by }: { row: Schemas["UsageRow"]; by: Group }) {
  if (by === "conversation") return <ConversationLink sessionKey={key} />;
  if (by === "worker") return <Link href={`/console/workers/${key}`}>{name || "deleted worker"}</Link>;
  return <>{name || key}</>;
}
