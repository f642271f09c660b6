import { Link } from "wouter-preact";
import type { Task } from "../../live/api.ts";
import { may } from "../../live/session.ts";
import { Ago } from "../../parts/time.tsx";

type Kind = NonNullable<Task["held_by"]>["kind"];

const WORDS: Record<Kind, string> = {
  budget: "It waits for a budget",
  engine: "It waits for the provider of its engine",
  run_limit: "It waits because too much has run",
  runner: "It waits for a machine",
};

/** Why a task waits, and until when (contract 14); nothing when nothing holds it. */
export function HeldNotice({ task }: { task: Task }) {
  const { held_by, reason } = task;
  if (held_by === null) return null;
  const { kind, until } = held_by;
  return (
    <div class="notice warn" role="note">
      <p>
        <strong>{WORDS[kind]}</strong>
        {reason !== "" && <>: {reason}</>}
        {until !== null && (
          <>
            {" "}There is room again <Ago at={until} />.
          </>
        )} {kind === "runner"
          ? may("read:runners") && <Link href="/console/runners">Runners</Link>
          : <Link href="/console/budgets">Budgets and engines</Link>}
      </p>
    </div>
  );
}
