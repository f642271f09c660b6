import { GitBranch, Trash2, Upload } from "lucide-preact";
import parseDiff from "parse-diff";
import { useMemo } from "preact/hooks";
import { useAddress } from "../../../live/address.ts";
import { api, load, parseProblem, type Schemas } from "../../../live/api.ts";
import { useGet, useResource } from "../../../live/resource.ts";
import { sendAuthorized } from "../../../live/session.ts";
import { Button } from "../../../parts/button.tsx";
import { Segments } from "../../../parts/field.tsx";
import { pluralize } from "../../../parts/format.ts";
import { LoadState, Notice } from "../../../parts/notice.tsx";
import { CopyButton } from "../../../parts/short_id.tsx";
import { FileDiff } from "./file_diff.tsx";

type Execution = Schemas["Execution"];

// The first files are open, up to this many lines. A browser takes seconds to draw more.
const OPEN_MAX_LINES = 400;
const CUT = /^\[diff cut: .*\]\n$/m;

/** The changes of a run or of its whole branch, file by file, in one column or side by side. */
export function ChangesView({ execution }: { execution: Execution }) {
  const { id, head_commit } = execution;
  const [{ layout, since }, change] = useAddress("layout", "since");
  const { data, error } = useResource(
    `diff ${id} ${head_commit} ${since}`,
    (signal) => readDiff(id, since === "base" ? "base" : "run", signal),
  );
  const files = useMemo(() => parseDiff(data?.replace(CUT, "") ?? ""), [data]);
  let lines = 0;
  return (
    <div class="changes">
      <BranchHead execution={execution} />
      <div class="changes-head">
        <Segments
          label="Extent"
          options={[["", "This run"], ["base", "Whole branch"]]}
          value={since}
          choose={(next) => change({ since: next })}
        />
        {data !== undefined && (
          <span>
            {pluralize(files.length, "file")} changed
            {data !== "" && <CopyButton text={data} subject="diff" />}
          </span>
        )}
        <Segments
          label="Layout"
          options={[["", "Unified"], ["split", "Side by side"]]}
          value={layout}
          choose={(next) => change({ layout: next })}
        />
      </div>
      {data === undefined && <LoadState error={error} />}
      {data !== undefined && CUT.test(data) && (
        <Notice tone="warn">
          The diff is longer than 2 MiB. The rest is in the branch.
        </Notice>
      )}
      {files.map((file, index) => {
        lines += file.additions + file.deletions;
        const open = index === 0 || lines <= OPEN_MAX_LINES;
        return (
          <FileDiff
            key={`${since} ${file.from} ${file.to}`}
            file={file}
            split={layout === "split"}
            open={open}
          />
        );
      })}
    </div>
  );
}

async function readDiff(id: string, since: "run" | "base", signal: AbortSignal): Promise<string> {
  const request = new Request(`/api/executions/${id}/diff?since=${since}`, { signal });
  const response = await sendAuthorized(request);
  if (!response.ok) throw parseProblem(response.status, await response.json().catch(() => null));
  return await response.text();
}

/** The branch, whether its commits are pushed, and what can be done with it. */
function BranchHead({ execution }: { execution: Execution }) {
  const { id, branch, tree_id, worker_id } = execution;
  const trees = useGet("/api/workers/{id}/trees", { path: { id: worker_id } }, /^tree\./);
  const tree = trees.data?.find((one) => one.id === tree_id);
  const params = { path: { id } };
  const isPushed = tree !== undefined && tree.pushed_commit === tree.head_commit;
  return (
    <p class="changes-branch">
      <GitBranch size={16} aria-hidden="true" /> <code>{branch}</code>
      <CopyButton text={branch} subject="branch" />
      {tree !== undefined && <span class="quiet">{describePush(tree)}</span>}
      {tree !== undefined && !isPushed && (
        <Button
          scope="write:executions"
          class="small"
          icon={Upload}
          confirm={{
            title: `Push ${branch}?`,
            text: "Its commits become visible in the remote repository.",
            action: "Push",
          }}
          press={() => load(api.POST("/api/executions/{id}/push", { params, body: {} }))}
          after={trees.reload}
          done="Pushed"
        >
          Push
        </Button>
      )}
      {tree !== undefined && (
        <Button
          scope="write:executions"
          class="small"
          icon={Trash2}
          confirm={{
            title: `Discard ${branch}?`,
            text: isPushed
              ? "The worktree and the branch are removed here. The pushed branch stays."
              : "The worktree, the branch and its commits are removed. They are not pushed, so they are lost.",
            action: "Discard",
          }}
          press={() => load(api.POST("/api/executions/{id}/discard", { params, body: {} }))}
          after={trees.reload}
          done="Discarded"
        >
          Discard
        </Button>
      )}
    </p>
  );
}

function describePush({ push, push_error, pushed_commit, head_commit }: Schemas["Tree"]): string {
  if (push === "failed" || push === "blocked") return `Not pushed: ${push_error}`;
  if (push === "ask" || push === "asked") return "Waits for an answer before its push";
  if (push === "wanted") return "Being pushed";
  if (pushed_commit === "") return "Not pushed";
  return pushed_commit === head_commit ? "Pushed" : "Pushed, without the latest commits";
}
