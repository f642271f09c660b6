import { ChevronDown, ChevronUp, Download } from "lucide-preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useAddress } from "../../live/address.ts";
import type { Schemas } from "../../live/api.ts";
import { saveAnswer } from "../../live/download.ts";
import { type Log, useLog } from "../../live/log.ts";
import { AnsiLine, carryCodes } from "../../parts/ansi_line.tsx";
import { Button, IconButton } from "../../parts/button.tsx";
import { Checkbox, Segments } from "../../parts/field.tsx";
import { formatClockSeconds, pluralize } from "../../parts/format.ts";
import { ErrorNotice } from "../../parts/notice.tsx";
import { Rows } from "../../parts/rows.tsx";
import { Status } from "../../parts/status.tsx";
import { ChangesView } from "./changes/changes_view.tsx";
import { findErrorLine } from "./log_errors.ts";
import { useMatches } from "./log_search.ts";
import { TimelineView } from "./timeline_view.tsx";

// The number of a line is a link, and a smaller target would be hard to hit.
const LINE_PX = 24;

interface LogProps {
  execution: Schemas["Execution"];
  /** Whether the run is active. */
  live: boolean;
}

/**
 * The log of a run, live while it is active, with terminal colors, a search and an address for each line. The log of a failed run
 * opens at its error. The timeline of the run shares its place.
 */
export function LogView({ execution, live }: LogProps) {
  const { id: executionId, status, verify } = execution;
  const failed = status === "failed";
  const checked = verify.attempts > 0;
  const hasChanges = execution.head_commit !== "";
  const [{ line, raw, view }, change] = useAddress("line", "raw", "view");
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const log = useLog(executionId, { raw: raw === "yes" });
  const { lines } = log;
  const open = useOpenCodes(lines);
  const matches = useMatches(lines, query);
  useEffect(() => setAt(0), [query]);
  const error = useMemo(() => failed && log.ended ? findErrorLine(lines) : undefined, [
    failed,
    log.ended,
    lines,
  ]);
  const match = matches[Math.min(at, matches.length - 1)];
  const selected = /^\d+$/.test(line) ? Number(line) - 1 : undefined;
  const classify = (index: number) =>
    index === match ? "hit" : index === selected ? "chosen" : index === error ? "error" : "";
  return (
    <section class="log">
      <div class="log-head">
        <h2 class="unseen">Log</h2>
        <Segments
          label="View"
          options={[
            ["", "Log"],
            ["timeline", "Timeline"],
            ...(hasChanges ? [["changes", "Changes"] as const] : []),
          ]}
          value={view}
          choose={(next) => change({ view: next })}
        />
        <span class="quiet">
          {lines.length > 0 && pluralize(lines.length, "line")}
          {live && !log.ended && ", live"}
        </span>
        {view === "" && (
          <>
            <LogSearch
              query={query}
              setQuery={setQuery}
              matches={matches.length}
              at={Math.min(at, matches.length - 1)}
              setAt={setAt}
            />
            <Checkbox
              label="Raw output"
              checked={raw === "yes"}
              onChange={(on) => change({ raw: on ? "yes" : "" })}
            />
          </>
        )}
        <Button
          class="icon"
          icon={Download}
          label="Download log"
          title="Download log"
          press={() => downloadLog(executionId, raw === "yes")}
        />
      </div>
      {checked && raw !== "yes" && (
        <CheckRounds
          lines={lines}
          show={(index) => change({ line: String(index + 1) })}
        />
      )}
      <ErrorNotice error={log.error} />
      {view === "changes" && hasChanges
        ? <ChangesView execution={execution} />
        : view === "timeline"
        ? (
          <TimelineView
            execution={execution}
            lines={lines}
            show={(index) => change({ view: "", line: String(index + 1) })}
          />
        )
        : lines.length === 0
        ? <p class="log-empty">{formatEmpty(log, { raw: raw === "yes", live })}</p>
        : (
          <Rows
            class="log-lines"
            label="Log lines"
            count={lines.length}
            height={LINE_PX}
            sticky={(live || failed) && selected === undefined && query === "" && error === undefined}
            target={match ?? selected ?? error}
            row={(index) => (
              <div class={`log-line ${classify(index)}`}>
                <a
                  href={`?line=${index + 1}`}
                  aria-label={`Line ${index + 1}`}
                  onClick={(
                    event,
                  ) => (event.preventDefault(),
                    change({ line: index === selected ? "" : String(index + 1) }))}
                >
                  {index + 1}
                </a>
                <LogText text={lines[index] ?? ""} open={open(index)} />
              </div>
            )}
          />
        )}
    </section>
  );
}

function downloadLog(id: string, raw: boolean): Promise<void> {
  return saveAnswer(
    new Request(`/api/executions/${id}/logs${raw ? "?raw=true" : ""}`),
    `run-${id.slice(-6)}.log`,
  );
}

const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z) /;

function LogText({ text, open }: { text: string; open: string }) {
  const stamp = STAMP.exec(text)?.[1];
  return (
    <span class="log-text">
      {stamp !== undefined && (
        <>
          <time dateTime={stamp} title={stamp}>{formatClockSeconds(Date.parse(stamp))}</time>
          {" "}
        </>
      )}
      <AnsiLine text={stamp === undefined ? text : text.slice(stamp.length + 1)} open={open} />
    </span>
  );
}

const ROUND = /^\S+ \[check (\d+): (.*)\]$/;

interface Round {
  index: number;
  number: string;
  result: string;
}

function CheckRounds({ lines, show }: { lines: readonly string[]; show: (index: number) => void }) {
  const rounds = useRounds(lines);
  if (rounds.length === 0) return null;
  return (
    <ol class="rounds" aria-label="Check rounds">
      {rounds.map(({ index, number, result }) => (
        <li key={index}>
          <Status value={result === "exit code 0" ? "passed" : "rejected"} bare /> Round {number}: {result}
          {" "}
          <button type="button" class="small" onClick={() => show(index)}>Line {index + 1}</button>
        </li>
      ))}
    </ol>
  );
}

// Each line is parsed once, except the last one, which may be incomplete.
function useRounds(lines: readonly string[]): readonly Round[] {
  const known = useMemo(() => ({ at: 0, found: [] as Round[] }), [lines[0]]);
  const last = lines.length - 1;
  for (; known.at < last; known.at++) known.found.push(...parseRound(lines, known.at));
  // After a broken connection the log is read again, and is shorter for a moment.
  return known.at > last ? known.found : [...known.found, ...parseRound(lines, last)];
}

function parseRound(lines: readonly string[], index: number): Round[] {
  const [, number, result = ""] = ROUND.exec(lines[index] ?? "") ?? [];
  return number === undefined ? [] : [{ index, number, result }];
}

interface SearchProps {
  query: string;
  setQuery: (text: string) => void;
  matches: number;
  at: number;
  setAt: (at: number) => void;
}

function LogSearch({ query, setQuery, matches, at, setAt }: SearchProps) {
  const step = (by: number) => matches > 0 && setAt((at + by + matches) % matches);
  return (
    <div class="log-search" role="search">
      <input
        type="search"
        aria-label="Search the log"
        placeholder="Search"
        value={query}
        onInput={(event) => setQuery(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && step(event.shiftKey ? -1 : 1)}
      />
      {query !== "" && (
        <>
          <span class="number" role="status">{matches === 0 ? "none" : `${at + 1} of ${matches}`}</span>
          <IconButton
            icon={ChevronUp}
            size={16}
            small
            data-again
            label="Previous match"
            onClick={() => step(-1)}
          />
          <IconButton
            icon={ChevronDown}
            size={16}
            small
            data-again
            label="Next match"
            onClick={() => step(1)}
          />
        </>
      )}
    </div>
  );
}

function formatEmpty(log: Log, { raw, live }: { raw: boolean; live: boolean }): string {
  // The log of an ended run is complete, so the page is only reading it.
  if (!log.ended) return live ? "Waiting for output" : "";
  return raw ? "This engine has no raw output." : "No output.";
}

// After a jump in a long log, only this many lines before the target are parsed.
const LOOK_BACK_LINES = 500;

/** Returns the codes that are active at the start of a line. After a jump only the nearest lines before it count. */
function useOpenCodes(lines: readonly string[]): (index: number) => string {
  const known = useMemo(() => new Map<number, string>(), [lines[0]]);
  return (index) => {
    let at = index;
    while (at > 0 && at > index - LOOK_BACK_LINES && !known.has(at)) at--;
    let open = known.get(at) ?? "";
    for (; at < index; at++) {
      open = carryCodes(open, lines[at] ?? "");
      known.set(at + 1, open);
    }
    return open;
  };
}
