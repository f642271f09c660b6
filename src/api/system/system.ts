import { conflict, ServiceError } from "../../domain/call/error.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import {
  findStartOfDay,
  type Overview,
  OVERVIEW_EXECUTIONS_MAX,
  OVERVIEW_WORKERS_MAX,
  type PasswordChange,
  type PasswordChangeResult,
  type ResumeResult,
} from "../../domain/system/system.ts";
import { listBeeRuns as listBeeRunRows } from "../../store/chat/bee_run.ts";
import { readCounters, tally } from "../../store/db/counters.ts";
import { changePassword as changePasswordRow, deleteRefreshTokens } from "../../store/account/credential.ts";
import type { Database } from "../../store/db/database.ts";
import {
  countWorkers,
  findRecentExecutions,
  findWorkerNames,
  listUsage,
} from "../../store/events/overview.ts";
import { findSetting, resumeSchedules } from "../../store/db/setting.ts";
import { listLimits } from "../../store/workers/rate_limit.ts";
import { VERSION } from "../../base/version.ts";
import { checkCurrentPassword, findOperatorCredential } from "../account/password_check.ts";
import { CHOSEN_COST, hashPassword } from "../account/password.ts";
import type { BeeRun } from "../../domain/chat/bee_run.ts";
import { parseJson } from "../../domain/call/json.ts";
import { type Answer, answer, answerPage } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { EXECUTION_STATUSES, TASK_STATUSES } from "../../domain/call/vocabulary.ts";
import { isReachable } from "../../store/events/health.ts";

/** Returns counts by status, today's usage and the latest executions, from counters and indexes only. */
export async function getOverview(
  { db, clock, timeZone, lifecycle }: Deps<"db" | "clock" | "timeZone" | "lifecycle">,
  call: Call,
): Promise<Answer<Overview>> {
  const now = clock.now();
  const since = findStartOfDay(now, timeZone);
  const [counters, workers, used, limited, paused, recent] = await Promise.all([
    readCounters(db),
    countWorkers(db),
    sumUsageSince(db, since),
    listLimits(db, now),
    findSetting(db, "schedules_paused"),
    findRecentExecutions(db, getBoundSessionKey(call.caller), OVERVIEW_EXECUTIONS_MAX),
  ]);
  return answer({
    version: VERSION,
    state: lifecycle.state,
    started_at: lifecycle.startedAt,
    workers,
    tasks: tally(counters, "task", TASK_STATUSES),
    executions: tally(counters, "execution", EXECUTION_STATUSES),
    usage_today: { since, ...used },
    schedules_paused: paused !== null,
    limited_engines: limited.map(({ engine, until }) => ({ engine, until })),
    recent_executions: parseJson(recent),
  });
}

async function sumUsageSince(db: Database, since: number): Promise<Omit<Overview["usage_today"], "since">> {
  const used = await listUsage(db, since);
  const known = (values: (number | null)[]) => values.filter((value) => value !== null);
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  // A value stays unknown while no run reports it.
  const sumKnown = (values: (number | null)[]) => known(values).length === 0 ? null : sum(known(values));
  const shown = used.slice(0, OVERVIEW_WORKERS_MAX);
  const names = await findWorkerNames(db, shown.map((one) => one.worker_id));
  return {
    executions: sum(used.map((one) => one.executions)),
    failed: sum(used.map((one) => one.failed)),
    input_tokens: sumKnown(used.map((one) => one.input_tokens)),
    output_tokens: sumKnown(used.map((one) => one.output_tokens)),
    cost_usd: sumKnown(used.map((one) => one.cost_usd)),
    workers: shown.map((one) => ({ ...one, worker_name: names.get(one.worker_id) ?? "" })),
  };
}

/** Lists the bee's runs, newest first. */
export async function listBeeRuns(
  { db }: Deps<"db">,
  call: Call,
  part: { limit: number; cursor?: string | undefined },
): Promise<Answer<BeeRun[]>> {
  return answerPage(await listBeeRunRows(db, getBoundSessionKey(call.caller), part));
}

/** Throws `forbidden` for an agent's run with any scopes, because the result would outlive the run (contract 2.8). */
export function refuseRuns(call: Call, action: string): void {
  if (call.caller.run === null) return;
  throw new ServiceError("forbidden", `Cannot ${action} from an agent's run: only an operator can do this`);
}

/**
 * Changes the operator's password and ends all older tokens. A token from a login needs the current password, so that a
 * stolen token is not enough. Throws `forbidden` for runs, `invalid_request`, `rate_limited`, or `conflict` while
 * configuration or environment sets the password.
 */
export async function changePassword(
  deps: Deps<"db" | "clock" | "auth" | "authority" | "loginLimits" | "passwordSource">,
  call: Call,
  input: PasswordChange,
  address: string,
): Promise<Answer<PasswordChangeResult>> {
  const { db, clock, authority, passwordSource } = deps;
  refuseRuns(call, "change the password");
  if (passwordSource === "config" || passwordSource === "environment") {
    const place = passwordSource === "config" ? "auth.password_hash" : "SVC_AUTH_PASSWORD";
    throw conflict(
      `Cannot change the password: ${place} sets it at every start. Change it there, or remove it.`,
    );
  }
  const credential = await findOperatorCredential(deps);
  if (credential === null) throw conflict("Cannot change the password: none exists yet");
  if (call.caller.person?.by !== "key") {
    const given = { name: "operator", password: input.current_password, address };
    await checkCurrentPassword(deps, credential.password_hash, given);
  }
  const hash = await hashPassword(input.new_password, CHOSEN_COST);
  const now = clock.now();
  await db.writeOr([
    ...changePasswordRow({ hash, source: "operator" }, credential.version, now),
    deleteRefreshTokens(),
    recordBy(call, now, { kind: "auth.password_changed" }),
  ], () => conflict("Cannot change the password: another request changed it first. Try again."));
  authority.raiseVersion(credential.version + 1);
  return answer({ username: credential.username, updated_at: now });
}

/** Resumes the schedules that a restore paused (contract 8.16). Throws `forbidden` for runs. */
export async function resume({ db, clock }: Deps<"db" | "clock">, call: Call): Promise<Answer<ResumeResult>> {
  refuseRuns(call, "resume schedules");
  if (await findSetting(db, "schedules_paused") === null) return answer({ resumed: false });
  await db.write([resumeSchedules(), recordBy(call, clock.now(), { kind: "system.resumed" })]);
  return answer({ resumed: true });
}

/** Returns "ready", or the reason why the service accepts no work. */
export async function findReadiness(
  { db, lifecycle, stages, owner }: Deps<"db" | "lifecycle" | "stages" | "owner">,
): Promise<string> {
  if (lifecycle.state !== "ready") return lifecycle.state;
  if (!stages().every((stage) => stage.well)) return "a background stage is stalled (see the log)";
  if (owner !== null && owner.fault !== null) return owner.fault;
  return await isReachable(db) ? "ready" : "database unreachable";
}
