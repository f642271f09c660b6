import { Link } from "wouter-preact";
import type { Schemas } from "../../live/api.ts";
import { now } from "../../live/clock.ts";
import { hasScope } from "../../live/session.ts";
import { formatUntil } from "../../parts/format.ts";
import { Notice } from "../../parts/notice.tsx";

type Block = NonNullable<Schemas["Task"]["held_by"]>;

const KINDS: Record<Block["kind"], string> = {
  budget: "budget used up",
  engine: "provider limit reached",
  run_limit: "run limit reached",
  runner: "no runner available",
};

/** Says what holds a task and until when, e.g. "On hold: budget used up, resumes in 24 h". */
export function formatBlock({ kind, until }: Block): string {
  return `On hold: ${KINDS[kind]}${until === null ? "" : `, resumes ${formatUntil(until, now.value)}`}`;
}

/** The page where a user can end the block. */
export function BlockLink({ block: { kind } }: { block: Block }) {
  if (kind === "runner") return hasScope("read:runners") && <Link href="/console/runners">Open runners</Link>;
  return hasScope("read:budgets") && <Link href="/console/budgets">Open budgets and engines</Link>;
}

export function BlockedNotice({ task: { held_by, reason } }: { task: Schemas["Task"] }) {
  if (held_by === null) return null;
  return (
    <Notice tone="warn">
      <strong>{formatBlock(held_by)}</strong>
      {reason !== "" && <>. {reason}.</>} <BlockLink block={held_by} />
    </Notice>
  );
}
