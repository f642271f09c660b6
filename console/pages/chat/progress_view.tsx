import { LoaderCircle, Square } from "lucide-preact";
import { Link } from "wouter-preact";
import { api, load } from "../../live/api.ts";
import { secondNow } from "../../live/clock.ts";
import { useLog } from "../../live/log.ts";
import { stripCodes } from "../../parts/ansi_line.tsx";
import { Button } from "../../parts/button.tsx";
import { formatDuration } from "../../parts/format.ts";
import type { Progress } from "./progress.ts";

const LINES_SHOWN = 3;
const LINE_MAX_CHARACTERS = 160;

/** The current work of a conversation: its worker, its duration, the last lines of its log, and a button that stops it. */
export function ProgressView({ progress, addressee }: { progress: Progress; addressee: string }) {
  const { state, executionId, since } = progress;
  if (state === "idle") return null;
  const params = { path: { id: executionId } };
  return (
    <div class="progress" role="status">
      <p class="progress-head">
        <LoaderCircle size={16} class="spins" aria-hidden="true" />
        <span>{formatProgress(progress, addressee)}</span>
        {state === "working" && (
          <span class="number quiet" aria-hidden="true">
            {formatDuration(Math.max(0, secondNow.value - since))}
          </span>
        )}
        {state === "working" && executionId !== "" && (
          <>
            <Link href={`/console/executions/${executionId}`}>Log</Link>
            <Button
              scope="write:executions"
              class="small"
              icon={Square}
              press={() => load(api.POST("/api/executions/{id}/cancel", { params, body: {} }))}
              done="Stopped"
            >
              Stop
            </Button>
          </>
        )}
      </p>
      {state === "working" && <LastLines executionId={executionId} />}
    </div>
  );
}

function LastLines({ executionId }: { executionId: string }) {
  const last = useLog(executionId, { tail: LINES_SHOWN }).lines.slice(-LINES_SHOWN);
  if (last.length === 0) return null;
  return (
    <ul class="steps" aria-hidden="true">
      {last.map((line, index) => <li key={index}>{removeTime(line)}</li>)}
    </ul>
  );
}

function removeTime(line: string): string {
  return stripCodes(line).replace(/^\S*\d\d:\d\d:\d\d\S*\s+/, "").slice(0, LINE_MAX_CHARACTERS);
}

function formatProgress({ state, worker }: Progress, addressee: string): string {
  const name = worker === "" ? "A worker" : worker;
  if (state === "working") return `${name} is working`;
  if (state === "queued") return `${name} is next`;
  return addressee === "" ? "Choosing a worker" : `Waiting for ${addressee}`;
}
