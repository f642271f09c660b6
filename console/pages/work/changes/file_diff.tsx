import type { Change, Chunk, File } from "parse-diff";
import { useState } from "preact/hooks";
import { CopyButton } from "../../../parts/short_id.tsx";

const SHOWN_MAX_LINES = 500;
const NONE = "/dev/null";

interface FileProps {
  file: File;
  /** Shows the old and the new text next to each other. */
  split: boolean;
  open: boolean;
}

/** The changes of one file, which can be folded. */
export function FileDiff({ file, split, open }: FileProps) {
  const [shown, setShown] = useState(open);
  const path = (file.to === NONE ? file.from : file.to) ?? "";
  return (
    <details class="diff-file" open={open} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>
        <span class="diff-path">
          <code>{file.from !== path && file.from !== NONE ? `${file.from} → ${path}` : path}</code>
          <CopyButton text={path} subject="path" />
        </span>
        <span class="diff-kind">{describeKind(file)}</span>
        <span class="diff-count">
          <span class="good-text">+{file.additions}</span> <span class="bad-text">−{file.deletions}</span>
        </span>
      </summary>
      {shown && <Lines file={file} split={split && !file.new && !file.deleted} path={path} />}
    </details>
  );
}

function describeKind(file: File): string {
  if (file.new) return "new";
  if (file.deleted) return "deleted";
  if (file.from !== file.to) return "renamed";
  return file.oldMode !== file.newMode && file.newMode !== undefined ? `mode ${file.newMode}` : "";
}

interface LinesProps {
  file: File;
  split: boolean;
  path: string;
}

function Lines({ file, split, path }: LinesProps) {
  const [all, setAll] = useState(false);
  const rows = file.chunks.flatMap((chunk) => split ? pairLines(chunk) : listLines(chunk));
  if (rows.length === 0) return <p class="quiet diff-empty">{describeWithoutLines(file)}</p>;
  const visible = all ? rows : rows.slice(0, SHOWN_MAX_LINES);
  return (
    <div class="diff-box" tabIndex={0} role="region" aria-label={`Changes of ${path}`}>
      <table class={split ? "diff split" : "diff"}>
        {split && (
          <colgroup>
            <col class="line-number" />
            <col />
            <col class="line-number" />
            <col />
          </colgroup>
        )}
        <tbody>
          {visible.map((row, index) =>
            row.hunk !== undefined
              ? (
                <tr key={index} class="hunk">
                  <td colSpan={4}>{row.hunk}</td>
                </tr>
              )
              : (
                <tr key={index}>
                  <Line change={row.left} old />
                  {split ? <Line change={row.right} /> : null}
                </tr>
              )
          )}
        </tbody>
      </table>
      {visible.length < rows.length && (
        <button type="button" class="small" onClick={() => setAll(true)}>Show all {rows.length} lines</button>
      )}
    </div>
  );
}

interface Row {
  /** The heading of a hunk, instead of a line. */
  hunk?: string;
  left?: Change | undefined;
  right?: Change | undefined;
}

function listLines({ content, changes }: Chunk): Row[] {
  return [{ hunk: content }, ...changes.map((left) => ({ left }))];
}

/** Puts removed lines next to the added lines that follow them. */
function pairLines({ content, changes }: Chunk): Row[] {
  const rows: Row[] = [{ hunk: content }];
  let [removed, added]: [Change[], Change[]] = [[], []];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++) {
      rows.push({ left: removed[at], right: added[at] });
    }
    [removed, added] = [[], []];
  };
  for (const change of changes) {
    if (change.type === "del") removed.push(change);
    else if (change.type === "add") added.push(change);
    else {
      flush();
      rows.push({ left: change, right: change });
    }
  }
  flush();
  return rows;
}

/** The number and the text of a line. The text starts with its sign, because some users cannot tell the colors apart. */
function Line({ change, old = false }: { change: Change | undefined; old?: boolean }) {
  if (change === undefined) return <td colSpan={2} class="none" />;
  const number = change.type === "normal" ? (old ? change.ln1 : change.ln2) : change.ln;
  return (
    <>
      <td class="line-number">{number}</td>
      <td class={change.type}>
        <code>{change.content}</code>
      </td>
    </>
  );
}

function describeWithoutLines(file: File): string {
  if (file.from !== file.to && !file.new && !file.deleted) return "Renamed without changes.";
  if (file.oldMode !== file.newMode && !file.new && !file.deleted) return "Only the mode changed.";
  return "No text to show: the file is binary or empty.";
}
