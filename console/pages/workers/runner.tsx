import { Link } from "wouter-preact";
import { api, ask } from "../../live/api.ts";
import type { Runner } from "../../live/runners.ts";
import { may } from "../../live/session.ts";
import { workers } from "../../live/workers.ts";
import { Act } from "../../parts/button.tsx";
import { confirmed, Dialog } from "../../parts/dialog.tsx";
import { Fact, Facts } from "../../parts/facts.tsx";
import { manyText } from "../../parts/format.ts";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { startCommand } from "./runner_token.tsx";

const NAMED = 20;

interface ViewProps {
  runner: Runner;
  reload: () => void;
  onClose: () => void;
}

/** One runner: what it has and does, whose directories are there, and the ways to take it out of work. */
export function RunnerView({ runner, reload, onClose }: ViewProps) {
  const { name, labels, state, engines, version, running, max_runs, allow_admin } = runner;
  return (
    <Dialog title={name} onClose={onClose} wide>
      <RunnerNote runner={runner} />
      <Facts>
        <Fact name="State">
          <Status of={runner.last_seen_at === null ? "awaited" : state} />
        </Fact>
        <Fact name="Last seen">{runner.last_seen_at !== null && <Ago at={runner.last_seen_at} />}</Fact>
        <Fact name="Runs">{max_runs > 0 && `${running} of ${max_runs} at a time`}</Fact>
        <Fact name="Version">{version}</Fact>
        <Fact name="Labels">{labels.join(", ") || "none"}</Fact>
        <Fact name="Engines">{engines.join(", ")}</Fact>
        <Fact name="Workers with *:*">{allow_admin ? "may run here" : "do not run here"}</Fact>
        <Fact name="Added">
          <Ago at={runner.created_at} />
        </Fact>
        <Residents name={name} />
      </Facts>
      <div class="actions end">
        {may("write:runners") && <RunnerActions runner={runner} reload={reload} onClose={onClose} />}
        <button type="button" onClick={onClose} autofocus>Close</button>
      </div>
    </Dialog>
  );
}

function RunnerNote({ runner: { state, draining, last_seen_at } }: { runner: Runner }) {
  return (
    <>
      {state === "silent" && (
        <div class="notice warn" role="note">
          <p>
            {last_seen_at === null
              ? <strong>It has not come yet.</strong>
              : <strong>Nothing is heard of it: what needs it waits.</strong>}{" "}
            It is started on its machine with <code>{startCommand()}</code>
          </p>
        </div>
      )}
      {draining && (
        <div class="notice" role="note">
          <p>It gets no more runs; those that it has may end. Then it can be stopped without losing any.</p>
        </div>
      )}
    </>
  );
}

/** The workers whose directory is there: they run nowhere else. */
function Residents({ name }: { name: string }) {
  const there = (workers.value ?? []).filter(({ home }) => home === name);
  if (there.length === 0) return null;
  return (
    <Fact name="Workers whose directory is there" wide>
      {there.slice(0, NAMED).map((worker, index) => (
        <span key={worker.id}>
          {index > 0 && ", "}
          <Link href={`/console/workers/${worker.id}`}>{worker.name}</Link>
        </span>
      ))}
      {there.length > NAMED && ` and ${there.length - NAMED} more`}
    </Fact>
  );
}

function RunnerActions({ runner, reload, onClose }: ViewProps) {
  const { id, name, draining, running } = runner;
  const path = { id_or_name: id };
  async function drain(): Promise<void> {
    const body = { draining: !draining };
    await attempt(
      () => ask(api.POST("/api/runners/{id_or_name}/drain", { params: { path }, body })),
      draining ? `${name} gets runs again` : `${name} gets no more runs`,
    );
    reload();
  }
  async function remove(): Promise<void> {
    const yes = await confirmed({
      title: `Remove ${name}?`,
      text: removalText(running, (workers.value ?? []).filter(({ home }) => home === name).length),
      action: "Remove the runner",
    });
    if (!yes) return;
    const done = await attempt(
      () => ask(api.DELETE("/api/runners/{id_or_name}", { params: { path } })),
      `${name} is removed`,
    );
    reload();
    if (done) onClose();
  }
  return (
    <>
      <Act class="danger left" run={() => remove()}>Remove</Act>
      <Act run={() => drain()}>{draining ? "Give it runs again" : "Drain"}</Act>
    </>
  );
}

function removalText(running: number, residents: number): string {
  return [
    "Its token counts no longer.",
    ...running === 0
      ? []
      : [`${manyText(running, "run")} of it ${running === 1 ? "is" : "are"} lost, and tried again later.`],
    ...residents === 0 ? [] : [
      `${manyText(residents, "worker")} ${residents === 1 ? "has its" : "have their"} directory there, and ` +
      `${residents === 1 ? "waits" : "wait"} until ${residents === 1 ? "it is" : "they are"} moved.`,
    ],
    "What is on its disk stays there.",
  ].join(" ");
}
