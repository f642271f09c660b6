import { Link } from "wouter-preact";
import { api, ask, type Schemas } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { Fact, Facts } from "../../parts/facts.tsx";
import { costText, countText, timeText } from "../../parts/format.ts";
import { Heading } from "../../parts/page.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { ExecutionRow } from "../work/execution_row.tsx";
import { Charts } from "./charts.tsx";
import { SystemTabs } from "./system_tabs.tsx";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

type Overview = Schemas["Overview"];

/** The service in numbers: what there is, what was used today, what ran last (contract 17). */
export function OverviewPage() {
  const read = useResource(
    "overview",
    (signal) => ask(api.GET("/api/system/overview", { signal })),
    ({ kind }) => /^(execution|task|worker|engine|system)\./.test(kind),
  );
  const overview = read.data;
  return (
    <>
      <Heading title="System" />
      <SystemTabs current="/console/system" />
      {overview === undefined ? <Waiting refusal={read.refusal} /> : (
        <div class="scrolled">
          <Facts>
            <Fact name="Version">{overview.version}</Fact>
            <Fact name="State">{overview.state}</Fact>
            <Fact name="Started">
              <Ago at={overview.started_at} />
            </Fact>
          </Facts>
          {overview.limited_engines.map(({ engine, until }) => (
            <p key={engine} class="notice warn">
              {engine} waits for its provider's limit until {timeText(until)}.
            </p>
          ))}
          <div class="tiles">
            <Tile
              title="Workers"
              total={overview.workers.total}
              href="/console/workers"
              counts={countsOf(overview.workers)}
            />
            <Tile
              title="Tasks"
              total={overview.tasks.total}
              href="/console/tasks"
              counts={countsOf(overview.tasks)}
            />
            <Tile
              title="Runs"
              total={overview.executions.total}
              href="/console/executions"
              counts={countsOf(overview.executions)}
            />
            <Today usage={overview.usage_today} />
          </div>
          <section>
            <h2>The last 24 hours</h2>
            <Charts sinceMs={DAY_MS} stepMs={HOUR_MS} />
          </section>
          <UsageTable usage={overview.usage_today} />
          <section>
            <h2>What ran last</h2>
            {overview.recent_executions.length === 0 ? <p class="quiet">Nothing yet.</p> : (
              <div class="list">
                {overview.recent_executions.map((one) => <ExecutionRow key={one.id} execution={one} />)}
              </div>
            )}
          </section>
        </div>
      )}
    </>
  );
}

function countsOf(counts: Record<string, number>): [string, number][] {
  return Object.entries(counts).filter(([name, count]) => name !== "total" && count > 0);
}

interface TileProps {
  title: string;
  total: number;
  href: string;
  counts: [string, number][];
}

function Tile({ title, total, href, counts }: TileProps) {
  return (
    <section class="tile">
      <h2>
        <Link href={href}>{title}</Link>
      </h2>
      <p class="big number">{countText(total)}</p>
      <ul>
        {counts.map(([name, count]) => (
          <li key={name}>
            <Status of={name} /> <span class="number">{countText(count)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Today({ usage }: { usage: Overview["usage_today"] }) {
  const { executions, failed, input_tokens, output_tokens, cost_usd } = usage;
  const rows: [string, string][] = [];
  if (failed > 0) rows.push(["failed", countText(failed)]);
  if (input_tokens !== null) rows.push(["tokens in", countText(input_tokens)]);
  if (output_tokens !== null) rows.push(["tokens out", countText(output_tokens)]);
  if (cost_usd !== null) rows.push(["cost, estimated", costText(cost_usd)]);
  return (
    <section class="tile">
      <h2>Runs today</h2>
      <p class="big number">{countText(executions)}</p>
      <ul>
        {rows.map(([name, value]) => (
          <li key={name}>
            <span>{name}</span> <span class="number">{value}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function UsageTable({ usage }: { usage: Overview["usage_today"] }) {
  if (usage.workers.length === 0) return null;
  const shown = (value: number | null, text: (value: number) => string) => value === null ? "–" : text(value);
  return (
    <section>
      <h2>Today, by worker</h2>
      <div class="table-box" tabIndex={0} role="region" aria-label="Use by worker today">
        <table>
          <thead>
            <tr>
              <th scope="col">Worker</th>
              <th scope="col" class="number">Runs</th>
              <th scope="col" class="number">Failed</th>
              <th scope="col" class="number">Tokens in</th>
              <th scope="col" class="number">Tokens out</th>
              <th scope="col" class="number">Cost, estimated</th>
            </tr>
          </thead>
          <tbody>
            {usage.workers.map((one) => (
              <tr key={one.worker_id}>
                <td>
                  <Link href={`/console/workers/${one.worker_id}`}>{one.worker_name}</Link>
                </td>
                <td class="number">{countText(one.executions)}</td>
                <td class="number">{countText(one.failed)}</td>
                <td class="number">{shown(one.input_tokens, countText)}</td>
                <td class="number">{shown(one.output_tokens, countText)}</td>
                <td class="number">{shown(one.cost_usd, costText)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
