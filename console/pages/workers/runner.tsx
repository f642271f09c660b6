import { Link } from "wouter-preact";
import { api, load, type Schemas } from "../../live/api.ts";
import { hasScope } from "../../live/session.ts";
import { workers } from "../../live/workers.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { pluralize } from "../../parts/format.ts";
import { Notice } from "../../parts/notice.tsx";
import { Facts } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { buildStartCommand } from "./runner_form.tsx";

type Runner = Schemas["Runner"];

const NAMES_SHOWN = 20;

interface DialogProps {
  runner: Runner;
  reload: () => void;
  onClose: () => void;
}

export function RunnerDialog({ runner, reload, onClose }: DialogProps) {
  const {
    name,
    labels,
    state,
    draining,
    engines,
    version,
    running,
    max_runs,
    allow_admin,
    secrets,
    last_seen_at,
  } = runner;
  const residents = (workers.value ?? []).filter(({ home }) => home === name);
  return (
    <Dialog title={name} onClose={onClose} wide>
      {state === "silent" && (
        <Notice tone="warn">
          <strong>
            {last_seen_at === null
              ? "The runner has not connected yet."
              : "The runner is not responding. Its work is waiting."}
          </strong>{" "}
          Start it on its machine: <code>{buildStartCommand()}</code>
        </Notice>
      )}
      {draining && (
        <Notice>
          The runner gets no new runs. When its current runs have finished, stop it.
        </Notice>
      )}
      <Facts
        values={{
          "State": <Status value={last_seen_at === null ? "awaited" : state} />,
          "Last seen": last_seen_at !== null && <Ago at={last_seen_at} />,
          "Current runs": max_runs > 0 && `${running} of ${max_runs}`,
          "Version": version,
          "Labels": labels.join(", ") || "none",
          "Engines": engines.join(", "),
          "Workers with all scopes": allow_admin ? "allowed" : "not allowed",
          "Stored secrets": secrets ? "sent" : "not sent",
          "Added": <Ago at={runner.created_at} />,
          "Workers with a directory here": residents.length > 0 && <Residents workers={residents} />,
        }}
        wide={["Workers with a directory here"]}
      />
      <div class="actions end">
        {hasScope("write:runners") && (
          <Actions runner={runner} residents={residents.length} reload={reload} onClose={onClose} />
        )}
        <button type="button" onClick={onClose} autofocus>Close</button>
      </div>
    </Dialog>
  );
}

function Residents({ workers: residents }: { workers: Schemas["Worker"][] }) {
  return (
    <>
      {residents.slice(0, NAMES_SHOWN).map((worker, index) => (
        <span key={worker.id}>
          {index > 0 && ", "}
          <Link href={`/console/workers/${worker.id}`}>{worker.name}</Link>
        </span>
      ))}
      {residents.length > NAMES_SHOWN && ` and ${residents.length - NAMES_SHOWN} more`}
    </>
  );
}

function Actions({ runner, residents, reload, onClose }: DialogProps & { residents: number }) {
  const { id, name, draining, running } = runner;
  const params = { path: { id_or_name: id } };
  return (
    <>
      <Button
        class="danger left"
        confirm={{
          title: `Remove ${name}?`,
          text: explainRemoval(running, residents),
          action: "Remove runner",
        }}
        press={() => load(api.DELETE("/api/runners/{id_or_name}", { params }))}
        done={`${name} removed`}
        after={(succeeded) => (reload(), succeeded && onClose())}
      >
        Remove
      </Button>
      <Button
        press={() =>
          load(api.POST("/api/runners/{id_or_name}/drain", { params, body: { draining: !draining } }))}
        done={draining ? `${name} gets new runs` : `${name} gets no new runs`}
        after={reload}
      >
        {draining ? "Resume" : "Drain"}
      </Button>
    </>
  );
}

function explainRemoval(running: number, residents: number): string {
  const one = residents === 1;
  return [
    "Its token is revoked.",
    running > 0 && `${pluralize(running, "run")} ${running === 1 ? "is" : "are"} lost and retried later.`,
    residents > 0 &&
    `The directory of ${pluralize(residents, "worker")} is on it. ` +
      `${one ? "This worker does" : "These workers do"} not run until you move ${one ? "it" : "them"}.`,
    "Files on its disk are kept.",
  ].filter(Boolean).join(" ");
}
