import { useMemo } from "preact/hooks";
import { api, ask, type Schemas } from "../../live/api.ts";
import { secondNow } from "../../live/clock.ts";
import { useResource } from "../../live/resource.ts";
import { Chart } from "../../parts/chart.tsx";
import { costText, countText, manyText, waitText } from "../../parts/format.ts";
import { Waiting } from "../../parts/notice.tsx";

type Point = Schemas["SeriesPoint"];

/** Runs, how long they waited, and what they cost, over time: `sinceMs` back in spans of `stepMs` (contract 17). */
export function Charts({ sinceMs, stepMs }: { sinceMs: number; stepMs: number }) {
  const read = useResource<Point[]>(`series ${sinceMs} ${stepMs}`, (signal) => {
    const query = { since: secondNow.value - sinceMs, step: stepMs };
    return ask(api.GET("/api/system/series", { params: { query }, signal }));
  }, ({ kind }) => /^execution\.(started|completed|failed)$/.test(kind));
  if (read.data === undefined) return <Waiting refusal={read.refusal} />;
  return (
    <div class="charts">
      <Runs points={read.data} />
      <Waits points={read.data} />
      <Cost points={read.data} />
    </div>
  );
}

function Runs({ points }: { points: Point[] }) {
  const { at, bars } = useMemo(() => ({
    at: points.map((point) => point.at),
    bars: [
      { name: "runs", token: "busy" as const, values: points.map((point) => point.executions) },
      { name: "failed", token: "bad" as const, values: points.map((point) => point.failed) },
    ],
  }), [points]);
  const words = `${manyText(sum(points, (point) => point.executions), "run")}, ${
    countText(sum(points, (point) => point.failed))
  } failed`;
  return (
    <section>
      <h2>Runs</h2>
      <p class="quiet">{words}</p>
      <Chart label={`Runs over time: ${words}`} at={at} bars={bars} text={wholeText} />
    </section>
  );
}

function Waits({ points }: { points: Point[] }) {
  const { at, bars } = useMemo(() => ({
    at: points.map((point) => point.at),
    bars: [
      {
        name: "longest",
        token: "line-strong" as const,
        values: points.map((one) => one.waited_longest_ms ?? 0),
      },
      { name: "average", token: "busy" as const, values: points.map((one) => one.waited_ms ?? 0) },
    ],
  }), [points]);
  const longest = Math.max(0, ...points.map((point) => point.waited_longest_ms ?? 0));
  const words = points.every((point) => point.waited_ms === null)
    ? "Nothing began."
    : `At most ${waitText(longest)}`;
  return (
    <section>
      <h2>Waiting before the start</h2>
      <p class="quiet">{words}</p>
      <Chart label={`Waiting over time: ${words}`} at={at} bars={bars} text={waitText} />
    </section>
  );
}

function Cost({ points }: { points: Point[] }) {
  const { at, bars } = useMemo(() => ({
    at: points.map((point) => point.at),
    bars: [{ name: "cost", token: "good" as const, values: points.map((point) => point.cost_usd ?? 0) }],
  }), [points]);
  if (points.every((point) => point.cost_usd === null)) return null;
  const spent = costText(sum(points, (point) => point.cost_usd ?? 0));
  return (
    <section>
      <h2>Cost, estimated</h2>
      <p class="quiet">{spent}</p>
      <Chart label={`Cost over time: ${spent}`} at={at} bars={bars} text={costText} />
    </section>
  );
}

// Half a run is no mark of a scale.
function wholeText(count: number): string {
  return Number.isInteger(count) ? countText(count) : "";
}

function sum(points: Point[], value: (point: Point) => number): number {
  return points.reduce((total, point) => total + value(point), 0);
}
