import { useMemo } from "preact/hooks";
import { api, load, type Schemas } from "../../live/api.ts";
import { secondNow } from "../../live/clock.ts";
import { useResource } from "../../live/resource.ts";
import { type Bars, Chart } from "../../parts/chart.tsx";
import { formatCost, formatCount, formatWait, pluralize } from "../../parts/format.ts";
import { LoadState } from "../../parts/notice.tsx";
import { Section } from "../../parts/page.tsx";

type Point = Schemas["SeriesPoint"];

/** The runs, their waiting times and their cost over the last `sinceMs`, in bars of `stepMs`. */
export function Charts({ sinceMs, stepMs }: { sinceMs: number; stepMs: number }) {
  const read = useResource<Point[]>(`series ${sinceMs} ${stepMs}`, (signal) => {
    const query = { since: secondNow.value - sinceMs, step: stepMs };
    return load(api.GET("/api/system/series", { params: { query }, signal }));
  }, /^execution\.(started|completed|failed)$/);
  if (read.data === undefined) return <LoadState error={read.error} />;
  const points = read.data;
  return (
    <div class="charts">
      {CHARTS.filter(({ hidden }) => hidden?.(points) !== true)
        .map((chart) => <SeriesChart key={chart.title} chart={chart} points={points} />)}
    </div>
  );
}

interface SeriesChartOptions {
  title: string;
  summarize: (points: Point[]) => string;
  bars: readonly (Pick<Bars, "name" | "token"> & { read: (point: Point) => number | null })[];
  format: (value: number) => string;
  hidden?: (points: Point[]) => boolean;
}

const CHARTS: readonly SeriesChartOptions[] = [
  {
    title: "Runs",
    summarize: (points) =>
      `${pluralize(sum(points, ({ executions }) => executions), "run")}, ${
        formatCount(sum(points, ({ failed }) => failed))
      } failed`,
    bars: [
      { name: "runs", token: "busy", read: ({ executions }) => executions },
      { name: "failed", token: "bad", read: ({ failed }) => failed },
    ],
    // A number of runs has no fractions, so the scale has none.
    format: (count) => Number.isInteger(count) ? formatCount(count) : "",
  },
  {
    title: "Queue time",
    summarize: (points) =>
      points.every(({ waited_ms }) => waited_ms === null)
        ? "No runs started."
        : `At most ${formatWait(Math.max(0, ...points.map((point) => point.waited_longest_ms ?? 0)))}`,
    bars: [
      { name: "longest", token: "line-strong", read: ({ waited_longest_ms }) => waited_longest_ms },
      { name: "average", token: "busy", read: ({ waited_ms }) => waited_ms },
    ],
    format: formatWait,
  },
  {
    title: "Estimated cost",
    summarize: (points) => formatCost(sum(points, ({ cost_usd }) => cost_usd ?? 0)),
    bars: [{ name: "cost", token: "good", read: ({ cost_usd }) => cost_usd }],
    format: formatCost,
    hidden: (points) => points.every(({ cost_usd }) => cost_usd === null),
  },
];

function SeriesChart({ chart, points }: { chart: SeriesChartOptions; points: Point[] }) {
  const { title, summarize, bars, format } = chart;
  const data = useMemo(() => ({
    at: points.map((point) => point.at),
    bars: bars.map(({ name, token, read }) => ({
      ...{ name, token },
      values: points.map((point) => read(point) ?? 0),
    })),
  }), [points]);
  const summary = summarize(points);
  return (
    <Section title={title}>
      <p class="quiet">{summary}</p>
      <Chart label={`${title} over time: ${summary}`} at={data.at} bars={data.bars} format={format} />
    </Section>
  );
}

function sum(points: Point[], read: (point: Point) => number): number {
  return points.reduce((total, point) => total + read(point), 0);
}
