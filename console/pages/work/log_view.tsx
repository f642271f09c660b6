import { ChevronDown, ChevronUp } from "lucide-preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useAddress } from "../../live/address.ts";
import { type Log, useLog } from "../../live/log.ts";
import { AnsiLine, openBehind } from "../../parts/ansi_line.tsx";
import { Tick } from "../../parts/field.tsx";
import { manyText, stampText } from "../../parts/format.ts";
import { RefusalNotice } from "../../parts/notice.tsx";
import { Rows } from "../../parts/rows.tsx";
import { Status } from "../../parts/status.tsx";
import { useHits } from "./log_search.ts";

const LINE_PX = 20;

interface LogProps {
  executionId: string;
  /** Whether the run goes on. */
  live: boolean;
  /** Whether its end is what one wants to see first. */
  atEnd: boolean;
  /** Whether the work was checked: then the log has a line for each round. */
  checked: boolean;
}

/** The log of a run: live while it goes on, with a terminal's colours, search, and an address for each line. */
export function LogView({ executionId, live, atEnd, checked }: LogProps) {
  const [{ line, raw }, change] = useAddress("line", "raw");
  const [wanted, setWanted] = useState("");
  const [at, setAt] = useState(0);
  const log = useLog(executionId, { raw: raw === "yes" });
  const { lines } = log;
  const open = useOpenColours(lines);
  const hits = useHits(lines, wanted);
  useEffect(() => setAt(0), [wanted]);
  const hit = hits[Math.min(at, hits.length - 1)];
  const chosen = /^\d+$/.test(line) ? Number(line) - 1 : undefined;
  return (
    <section class="log">
      <div class="log-head">
        <h2>Log</h2>
        <span class="quiet">
          {lines.length > 0 && manyText(lines.length, "line")}
          {live && !log.ended && ", live"}
        </span>
        <LogSearch
          wanted={wanted}
          setWanted={setWanted}
          hits={hits.length}
          at={Math.min(at, hits.length - 1)}
          setAt={setAt}
        />
        <Tick
          label="As the engine wrote it"
          checked={raw === "yes"}
          onChange={(on) => change({ raw: on ? "yes" : "" })}
        />
      </div>
      {checked && raw !== "yes" && (
        <Rounds
          lines={lines}
          show={(index) => change({ line: String(index + 1) })}
        />
      )}
      <RefusalNotice refusal={log.refusal} />
      {lines.length === 0 ? <p class="log-empty">{emptyWords(log, raw === "yes")}</p> : (
        <Rows
          class="log-lines"
          label="Log lines"
          count={lines.length}
          height={LINE_PX}
          sticky={atEnd && chosen === undefined && wanted === ""}
          target={hit ?? chosen}
          row={(index) => (
            <div class={`log-line ${index === chosen ? "chosen" : ""} ${index === hit ? "hit" : ""}`}>
              <a
                href={`?line=${index + 1}`}
                aria-label={`Line ${index + 1}`}
                onClick={(
                  event,
                ) => (event.preventDefault(), change({ line: index === chosen ? "" : String(index + 1) }))}
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

const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z) /;

/** A line with the reader's time of day before it, and the whole time on hover. */
function LogText({ text, open }: { text: string; open: string }) {
  const stamp = STAMP.exec(text)?.[1];
  if (stamp === undefined) {
    return (
      <span class="log-text">
        <AnsiLine text={text} open={open} />
      </span>
    );
  }
  return (
    <span class="log-text">
      <time dateTime={stamp} title={stamp}>{stampText(Date.parse(stamp))}</time>{" "}
      <AnsiLine text={text.slice(stamp.length + 1)} open={open} />
    </span>
  );
}

const ROUND = /^\S+ \[check (\d+): (.*)\]$/;

interface Round {
  index: number;
  number: string;
  words: string;
}

/** The rounds of the check, each with the way to its end in the log (contract 13). */
function Rounds({ lines, show }: { lines: readonly string[]; show: (index: number) => void }) {
  const rounds = useRounds(lines);
  if (rounds.length === 0) return null;
  return (
    <ol class="rounds" aria-label="Rounds of the check">
      {rounds.map(({ index, number, words }) => (
        <li key={index}>
          <Status of={words === "exit code 0" ? "passed" : "rejected"} bare /> Round {number}: {words}{" "}
          <button type="button" class="small" onClick={() => show(index)}>Line {index + 1}</button>
        </li>
      ))}
    </ol>
  );
}

// Each line is looked at once, but for the last: it may go on.
function useRounds(lines: readonly string[]): readonly Round[] {
  const known = useMemo(() => ({ at: 0, found: [] as Round[] }), [lines[0]]);
  const last = lines.length - 1;
  for (; known.at < last; known.at++) known.found.push(...roundOf(lines, known.at));
  // A log that is read anew, because the connection broke, is short again for a moment.
  return known.at > last ? known.found : [...known.found, ...roundOf(lines, last)];
}

function roundOf(lines: readonly string[], index: number): Round[] {
  const [, number, words = ""] = ROUND.exec(lines[index] ?? "") ?? [];
  return number === undefined ? [] : [{ index, number, words }];
}

interface SearchProps {
  wanted: string;
  setWanted: (text: string) => void;
  hits: number;
  at: number;
  setAt: (at: number) => void;
}

function LogSearch({ wanted, setWanted, hits, at, setAt }: SearchProps) {
  const go = (by: number) => hits > 0 && setAt((at + by + hits) % hits);
  return (
    <div class="log-search" role="search">
      <input
        type="search"
        aria-label="Search the log"
        placeholder="Search"
        value={wanted}
        onInput={(event) => setWanted(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && go(event.shiftKey ? -1 : 1)}
      />
      {wanted !== "" && (
        <>
          <span class="number" role="status">{hits === 0 ? "none" : `${at + 1} of ${hits}`}</span>
          <button
            type="button"
            class="icon small"
            data-again
            aria-label="Previous hit"
            onClick={() => go(-1)}
          >
            <ChevronUp size={16} aria-hidden="true" />
          </button>
          <button type="button" class="icon small" data-again aria-label="Next hit" onClick={() => go(1)}>
            <ChevronDown size={16} aria-hidden="true" />
          </button>
        </>
      )}
    </div>
  );
}

function emptyWords(log: Log, raw: boolean): string {
  if (!log.ended) return "Waiting for the first line";
  return raw ? "This engine writes no events of its own." : "Nothing was written.";
}

// Whoever goes from one end of a long log to the other does not wait for all that is between.
const LOOK_BACK_LINES = 500;

/** What lines before a line have left switched on: all of them for who has read on to it, the nearest for who went there at once. */
function useOpenColours(lines: readonly string[]): (index: number) => string {
  const known = useMemo(() => new Map<number, string>(), [lines[0]]);
  return (index) => {
    let at = index;
    while (at > 0 && at > index - LOOK_BACK_LINES && !known.has(at)) at--;
    let open = known.get(at) ?? "";
    for (; at < index; at++) {
      open = openBehind(open, lines[at] ?? "");
      known.set(at + 1, open);
    }
    return open;
  };
}
