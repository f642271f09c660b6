import { createId } from "../../base/id.ts";
import { signRunnerToken } from "../../base/token.ts";
import { conflict, notFound } from "../../domain/call/error.ts";
import { formatJson, parseJson } from "../../domain/call/json.ts";
import {
  type CreatedRunner,
  type RunnerCreate,
  type RunnerFilter,
  RUNNERS_MAX,
  type RunnerView,
} from "../../domain/workers/runner.ts";
import type { EventKind } from "../../domain/call/vocabulary.ts";
import { type Statement } from "../../store/db/database.ts";
import { record } from "../../store/events/journal.ts";
import {
  deleteRunner as deleteRunnerRow,
  findRunner,
  insertRunner,
  listRunners as listRunnerRows,
  setDraining,
} from "../../store/workers/runner.ts";
import { type Answer, answer, answerPage, DELETED, requireFound } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import { createOnce, type Creation } from "../call/idempotency.ts";
import type { Deps } from "../call/services.ts";
import { requireScope } from "./worker_env.ts";

export async function listRunners({ db, clock }: Deps<"db" | "clock">, filter: RunnerFilter) {
  return answerPage(await listRunnerRows(db, filter, clock.now()));
}

export async function getRunner(deps: Deps<"db" | "clock">, who: string): Promise<Answer<RunnerView>> {
  return answer(await requireRunner(deps, who));
}

async function requireRunner({ db, clock }: Deps<"db" | "clock">, who: string): Promise<RunnerView> {
  return requireFound(await findRunner(db, who, clock.now()), "runner", who);
}

/**
 * Creates a runner and its token, which is stored nowhere. Throws `conflict` for a taken name, and `forbidden` for a runner with secrets
 * by a caller who may not change secrets.
 */
export async function createRunner(
  { db, clock, authority }: Deps<"db" | "clock" | "authority">,
  call: Call,
  input: RunnerCreate,
): Promise<Answer<CreatedRunner>> {
  if (input.secrets) requireScope(call, "write:secrets", "secrets");
  const created = await createOnce({ db, clock }, call, () => planRunner({ clock }, call, input));
  const runner = parseJson(created.json);
  return { ...created, json: formatJson({ ...runner, token: await signRunnerToken(authority.key, runner) }) };
}

function planRunner({ clock }: Deps<"clock">, call: Call, input: RunnerCreate): Creation<RunnerView> {
  const now = clock.now();
  const runner: RunnerView = {
    id: createId(),
    ...input,
    state: "silent",
    draining: false,
    version: "",
    engines: [],
    box: false,
    max_runs: 0,
    running: 0,
    last_seen_at: null,
    created_at: now,
  };
  return {
    statements: [...insertRunner(runner), buildEvent("runner.created", runner, call, now)],
    response: runner,
    lost: () => conflict(`Cannot add the runner: ${RUNNERS_MAX} runners exist. Delete some first.`),
    duplicate: () =>
      conflict(
        `Cannot add a runner called ${JSON.stringify(input.name)}: a runner has this name. Case is ignored.`,
      ),
  };
}

/** Starts or ends draining. A draining runner finishes its runs and gets no more. Throws `not_found`. */
export async function drainRunner(
  deps: Deps<"db" | "clock">,
  call: Call,
  who: string,
  draining: boolean,
): Promise<Answer<RunnerView>> {
  const { db, clock } = deps;
  const runner = await requireRunner(deps, who);
  await db.writeOr(
    [
      ...setDraining(runner.id, draining),
      buildEvent("runner.updated", runner, call, clock.now(), { draining }),
    ],
    () => notFound("runner", who),
  );
  return answer(await requireRunner(deps, runner.id));
}

/** Deletes a runner and revokes its token. Its runs are lost when their leases expire. Throws `not_found`. */
export async function deleteRunner(deps: Deps<"db" | "clock" | "authority">, call: Call, who: string) {
  const { db, clock, authority } = deps;
  const runner = await requireRunner(deps, who);
  await db.writeOr(
    [...deleteRunnerRow(runner.id), buildEvent("runner.deleted", runner, call, clock.now())],
    () => notFound("runner", who),
  );
  authority.forget();
  return DELETED;
}

function buildEvent(
  kind: EventKind,
  { id, name }: Pick<RunnerView, "id" | "name">,
  { caller }: Call,
  now: number,
  data: Record<string, unknown> = {},
): Statement {
  return record(now, { kind, actor: caller.subject, data: { runner_id: id, name, ...data } });
}
