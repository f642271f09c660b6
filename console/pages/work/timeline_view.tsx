import { Link } from "wouter-preact";
import { api, load, type Schemas } from "../../live/api.ts";
import { secondNow } from "../../live/clock.ts";
import { useResource } from "../../live/resource.ts";
import { formatWait } from "../../parts/format.ts";
import { LoadState } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { buildTimeline, type Span } from "./run_timeline.ts";

interface TimelineProps {
  execution: Schemas["Execution"];
  lines: readonly string[];
  show: (line: number) => void;
}

const EVENTS_READ = 100;
const RUNS_READ = 100;

/** The waits, attempts, questions and tool calls of a run, as bars on one time axis. */
export function TimelineView({ execution, lines, show }: TimelineProps) {
  const { task_id, session_key, worker_id, run_no } = execution;
  const read = useResource(
    `timeline ${execution.id}`,
    async (signal) => {
      const [runs, questions, events] = await Promise.all([
        // The list has no filter by task, but the worker's runs of the same conversation include them.
        load(api.GET("/api/executions", {
          params: { query: { worker_id, session_id: session_key, page_size: RUNS_READ } },
          signal,
        })),
        load(api.GET("/api/questions", { params: { query: { session_key, page_size: RUNS_READ } }, signal }))
          .catch(() => []),
        load(api.GET("/api/events", {
          params: { query: { task_id, page_size: EVENTS_READ } },
          headers: { accept: "application/json" },
          signal,
        })).catch(() => []),
      ]);
      return {
        attempts: runs.filter((one) => one.task_id === task_id && one.run_no === run_no).toReversed(),
        questions: questions.filter((one) => one.task_id === task_id && isInside(one.created_at, execution)),
        events: typeof events === "string" ? [] : events,
      };
    },
    (event) => event.task_id === task_id || event.execution_id === execution.id,
  );
  if (read.data === undefined) return <LoadState error={read.error} />;
  const spans = buildTimeline({ ...read.data, execution, lines });
  const now = secondNow.value;
  const start = Math.min(...spans.map(({ from }) => from));
  const end = Math.max(start + 1, ...spans.map(({ to }) => to ?? now));
  return (
    <ol class="spans" aria-label="Timeline" tabIndex={0}>
      {spans.map((span, index) => (
        <SpanRow key={index} span={span} start={start} end={end} now={now} show={show} />
      ))}
    </ol>
  );
}

function isInside(at: number, { created_at, completed_at }: Schemas["Execution"]): boolean {
  return at >= created_at && (completed_at === null || at <= completed_at);
}

interface SpanProps {
  span: Span;
  start: number;
  end: number;
  now: number;
  show: (line: number) => void;
}

function SpanRow({ span, start, end, now, show }: SpanProps) {
  const { kind, title, note, from, to, status, line, href } = span;
  const scale = 100 / (end - start);
  const last = to ?? now;
  const style = { left: `${(from - start) * scale}%`, width: `${Math.max(0, last - from) * scale}%` };
  return (
    <li class={`span ${kind}`}>
      <span class="span-name" title={note}>
        <Status value={status} bare /> {line !== undefined
          ? <button type="button" class="link" onClick={() => show(line)}>{title}</button>
          : href === undefined
          ? title
          : <Link href={href}>{title}</Link>} <span class="quiet">{note}</span>
      </span>
      <span class="span-track" aria-hidden="true">
        <span class={`span-bar ${status}`} style={style} />
      </span>
      <span class="span-time number">{kind === "check" ? "" : formatWait(Math.max(0, last - from))}</span>
    </li>
  );
}
