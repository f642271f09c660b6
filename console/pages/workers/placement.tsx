import { api, load, type Schemas } from "../../live/api.ts";
import { filterByLabels, useRunners } from "../../live/runners.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { FormDialog, useForm } from "../../parts/form.tsx";
import type { NamedFacts } from "../../parts/page.tsx";
import { CopyButton } from "../../parts/short_id.tsx";
import { showToast } from "../../parts/toast.tsx";

type Worker = Schemas["Worker"];

/** The label of a directory that is relative to the work directory of a runner. */
export const REMOTE_DIRECTORY = "Directory on the runner";
const ANY_RUNNER = "first runner that claims it";
const NO_HOME = "none";
const ANY_FOR_EACH_RUN = "any runner with these labels";

/** Lists the facts about where a worker runs and where its directory is. */
export function listPlacement({ id, runs_on, home, repo, work_dir }: Worker, move: () => void): NamedFacts {
  const remote = runs_on.length > 0;
  const isHomeless = remote && (home === NO_HOME || repo !== null);
  // The service chooses this directory relative to the work directory of the runner.
  const path = remote && work_dir.endsWith(`/workers/${id}`) ? `workers/${id}` : work_dir;
  return {
    "Runner labels": runs_on.join(", "),
    Runner: remote && (
      <>
        {isHomeless ? ANY_FOR_EACH_RUN : home || ANY_RUNNER}{" "}
        {repo === null && hasScope("write:workers") && hasScope("read:runners") && (
          <Button class="small" press={move}>Move</Button>
        )}
      </>
    ),
    [path === work_dir ? "Directory" : REMOTE_DIRECTORY]: isHomeless ? "a new one for each run" : (
      <>
        <code>{path}</code> <CopyButton text={path} subject="directory" />
      </>
    ),
  };
}

export function MoveForm({ worker, onClose }: { worker: Worker; onClose: () => void }) {
  const { id, name, runs_on } = worker;
  const runners = filterByLabels(useRunners().data ?? [], runs_on).filter((one) => one.name !== worker.home);
  const form = useForm({
    initial: { home: "" },
    async send(body) {
      await load(api.POST("/api/workers/{id}/rehome", { params: { path: { id } }, body }));
      showToast(`${name} moved`);
      onClose();
    },
  });
  return (
    <FormDialog
      form={form}
      title={`Move ${name}`}
      action="Move worker"
      onClose={onClose}
      narrow
      fields={[{
        name: "home",
        label: "New runner",
        options: [
          ["", ANY_RUNNER],
          [NO_HOME, "none, with a new directory for each run"],
          ...runners.map((one) => [one.name, one.name] as const),
        ],
      }]}
    >
      <p>Nothing is copied. Files stay on the old runner, and conversations start fresh.</p>
    </FormDialog>
  );
}
