import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { formatClock, formatDay } from "./format.ts";

export interface Bars {
  name: string;
  token: "good" | "bad" | "busy" | "line-strong";
  values: readonly number[];
}

interface ChartProps {
  label: string;
  /** The start of each interval, in Unix ms. */
  at: readonly number[];
  /** Series with the largest first, because each series is drawn over the previous one. */
  bars: readonly Bars[];
  format: (value: number) => string;
}

const HEIGHT_PX = 160;

export function Chart({ label, at, bars, format }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const area = box.current;
    if (area === null) return;
    let plot: uPlot | null = null;
    const draw = () => {
      plot?.destroy();
      const size = { width: area.clientWidth, height: HEIGHT_PX };
      plot = new uPlot(buildOptions(size, bars, format), buildData(at, bars), area);
    };
    draw();
    const resized = new ResizeObserver(() => {
      if (plot !== null && plot.width !== area.clientWidth) {
        plot.setSize({ width: area.clientWidth, height: HEIGHT_PX });
      }
    });
    resized.observe(area);
    // A canvas ignores style sheets, so another color scheme needs another drawing.
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => {
      dark.removeEventListener("change", draw);
      resized.disconnect();
      plot?.destroy();
    };
  }, [at, bars]);
  return (
    <>
      <ul class="legend">
        {bars.map(({ name, token }) => <li key={name} class={token}>{name}</li>)}
      </ul>
      <div class="chart" role="img" aria-label={label} ref={box} />
    </>
  );
}

function buildData(at: readonly number[], bars: readonly Bars[]): uPlot.AlignedData {
  return [at.map((one) => one / 1000), ...bars.map(({ values }) => [...values])];
}

// The tick at midnight shows the date.
function formatTick(at: number): string {
  const date = new Date(at);
  return date.getHours() === 0 && date.getMinutes() === 0 ? formatDay(at, Date.now()) : formatClock(at);
}

function buildOptions(
  size: { width: number; height: number },
  bars: readonly Bars[],
  format: (value: number) => string,
): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const axis = {
    stroke: token("ink-soft"),
    grid: { stroke: token("line"), width: 1 },
    ticks: { show: false },
  };
  const paths = uPlot.paths.bars?.({ size: [0.7, 40] });
  return {
    ...size,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.1)] } },
    axes: [{ ...axis, values: (_plot, ticks) => ticks.map((tick) => formatTick(tick * 1000)) }, {
      ...axis,
      size: 56,
      values: (_plot, ticks) => ticks.map(format),
    }],
    series: [
      {},
      ...bars.map(({ name, token: color }) => ({
        label: name,
        fill: token(color),
        stroke: token(color),
        width: 0,
        ...(paths === undefined ? {} : { paths }),
        points: { show: false },
      })),
    ],
  };
}
