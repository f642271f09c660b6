import { useState } from "preact/hooks";
import { api, ask, type Worker } from "../../live/api.ts";
import { useRunners, withLabels } from "../../live/runners.ts";
import { may } from "../../live/session.ts";
import { Choice } from "../../parts/field.tsx";
import { Fact } from "../../parts/facts.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { CopyButton } from "../../parts/short_id.tsx";
import { say } from "../../parts/toast.tsx";

/** Where a worker runs and has its directory (contract 18.3). */
export function WhereFacts({ worker, move }: { worker: Worker; move: () => void }) {
  const { id, runs_on, home, work_dir } = worker;
  // A directory that the service chose is below that of the runner.
  const path = runs_on.length > 0 && work_dir.endsWith(`/workers/${id}`) ? `workers/${id}` : work_dir;
  return (
    <>
      {runs_on.length > 0 && (
        <>
          <Fact name="Runs on runners with">{runs_on.join(", ")}</Fact>
          <Fact name="Its directory is on">
            {home || "the first that runs it"}{" "}
            {may("write:workers") && may("read:runners") && (
              <button type="button" class="small" onClick={move}>Move</button>
            )}
          </Fact>
        </>
      )}
      <Fact name={path === work_dir ? "Directory" : "Directory, below that of the runner"} wide>
        <code class="path">{path}</code> <CopyButton text={path} what="directory" />
      </Fact>
    </>
  );
}

/** Says that a worker's directory is on another runner from here on (contract 18.3). */
export function MoveForm({ worker, onClose }: { worker: Worker; onClose: () => void }) {
  const { id, name, runs_on } = worker;
  const read = useRunners();
  const [home, setHome] = useState("");
  const sent = useSend(async () => {
    await ask(api.POST("/api/workers/{id}/rehome", { params: { path: { id } }, body: { home } }));
    say(`${name} is moved`);
    onClose();
  });
  const able = withLabels(read.data ?? [], runs_on).filter((runner) => runner.name !== worker.home);
  return (
    <DialogForm title={`Move ${name}`} action="Move it" sent={sent} onClose={onClose} narrow>
      <p>
        Nothing is copied: what is in its directory stays where it was, and its conversations begin anew.
      </p>
      {read.data === undefined ? <Waiting refusal={read.refusal} /> : (
        <Choice
          label="Its directory is then on"
          value={home}
          onChange={setHome}
          options={[["", "the first that runs it"], ...able.map((one) => [one.name, one.name] as const)]}
        />
      )}
    </DialogForm>
  );
}
