import { Link } from "wouter-preact";
import type { Schemas } from "../../live/api.ts";
import { hasScope } from "../../live/session.ts";
import { Notice } from "../../parts/notice.tsx";
import { Ago } from "../../parts/time.tsx";

type Kind = NonNullable<Schemas["Task"]["held_by"]>["kind"];

const KINDS: Record<Kind, string> = {
  budget: "Waiting for a budget",
  engine: "Waiting for the engine's provider",
  run_limit: "Waiting because of the run limit",
  runner: "Waiting for a runner",
};

export function BlockedNotice({ task: { held_by, reason } }: { task: Schemas["Task"] }) {
  if (held_by === null) return null;
  const { kind, until } = held_by;
  return (
    <Notice tone="warn">
      <strong>{KINDS[kind]}</strong>
      {reason !== "" && <>: {reason}</>}
      {until !== null && (
        <>
          {" "}Available again <Ago at={until} />.
        </>
      )} {kind === "runner"
        ? hasScope("read:runners") && <Link href="/console/runners">Runners</Link>
        : <Link href="/console/budgets">Budgets and engines</Link>}
    </Notice>
  );
}
