import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { clockText, dayText } from "./format.ts";

/** One kind of bar, with the name of its colour among the tokens. */
interface Bars {
  name: string;
  token: "good" | "bad" | "busy" | "line-strong";
  values: readonly number[];
}

interface ChartProps {
  /** What the chart shows, in words for who does not see it. */
  label: string;
  /** The start of each span, in Unix ms. */
  at: readonly number[];
  /** Each stands in front of the one before, so the largest comes first. */
  bars: readonly Bars[];
  /** How a value is written. */
  text: (value: number) => string;
}

const HEIGHT_PX = 160;

/** Values over time, as bars. */
export function Chart({ label, at, bars, text }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = box.current;
    if (place === null) return;
    let plot: uPlot | null = null;
    const draw = () => {
      plot?.destroy();
      const size = { width: place.clientWidth, height: HEIGHT_PX };
      plot = new uPlot(optionsOf(size, bars, text), dataOf(at, bars), place);
    };
    draw();
    const resized = new ResizeObserver(() => {
      if (plot !== null && plot.width !== place.clientWidth) {
        plot.setSize({ width: place.clientWidth, height: HEIGHT_PX });
      }
    });
    resized.observe(place);
    // A canvas knows no style sheet: it is drawn anew in the other colours.
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
      {bars.length > 1 && (
        <ul class="legend">
          {bars.map(({ name, token }) => <li key={name} class={token}>{name}</li>)}
        </ul>
      )}
      <div class="chart" role="img" aria-label={label} ref={box} />
    </>
  );
}

function dataOf(at: readonly number[], bars: readonly Bars[]): uPlot.AlignedData {
  return [at.map((one) => one / 1000), ...bars.map(({ values }) => [...values])];
}

// Midnight is told as the day that begins.
function tickText(at: number): string {
  const date = new Date(at);
  return date.getHours() === 0 && date.getMinutes() === 0 ? dayText(at, Date.now()) : clockText(at);
}

function optionsOf(
  size: { width: number; height: number },
  bars: readonly Bars[],
  text: (value: number) => string,
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
    axes: [{ ...axis, values: (_plot, ticks) => ticks.map((tick) => tickText(tick * 1000)) }, {
      ...axis,
      size: 56,
      values: (_plot, ticks) => ticks.map(text),
    }],
    series: [
      {},
      ...bars.map(({ name, token: colour }) => ({
        label: name,
        fill: token(colour),
        stroke: token(colour),
        width: 0,
        ...(paths === undefined ? {} : { paths }),
        points: { show: false },
      })),
    ],
  };
}
