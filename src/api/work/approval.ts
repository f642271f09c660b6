// Whether a tool call of an agent runs: a person's answer, or what the conversation remembers (contract 23)
import { createId } from "../../base/id.ts";
import { notFound, ServiceError } from "../../domain/call/error.ts";
import { type Json, parseJson } from "../../domain/call/json.ts";
import type { RunBinding } from "../../domain/call/scope.ts";
import { ALLOW, ALLOW_HERE, BY_DEFAULT, DENY } from "../../domain/call/vocabulary.ts";
import { hasConversation, isApiConversation, parsePlatformName } from "../../domain/chat/message.ts";
import { matchNoticeKinds, TO_WEBHOOK } from "../../domain/system/notice.ts";
import {
  type ApprovalCreate,
  type ApprovalDecision,
  computeCallKey,
  formatApproval,
  listApprovalOptions,
} from "../../domain/work/approval.ts";
import type { Question } from "../../domain/work/question.ts";
import { findQuestionJson, type NewQuestion } from "../../store/work/question.ts";
import { openQuestion } from "../../store/chat/open_question.ts";
import { findCallGrant } from "../../store/work/approval.ts";
import { withdrawCall } from "../../store/work/question_transitions.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Creation } from "../call/idempotency.ts";
import type { WaitLimits } from "../call/long_poll.ts";
import type { Deps } from "../call/services.ts";
import { waitForQuestion } from "./question.ts";
import { buildTooManyOpen } from "./question_ask.ts";

type RequestDeps = Deps<"db" | "clock" | "runLimits" | "platforms" | "notices">;

/**
 * Decides on a tool call of the run. Allows a remembered call, denies a call where no person would see a question, and opens a question
 * for any other. Throws `conflict` or `rate_limited` when the run or its conversation has asked too much.
 */
export async function planApproval(
  deps: RequestDeps,
  call: Call,
  input: ApprovalCreate,
): Promise<Creation<ApprovalDecision>> {
  const { db, clock, runLimits } = deps;
  const run = requireRun(call);
  const decide = (decision: ApprovalDecision["decision"], reason: string, id = "") => ({
    statements: [],
    response: { id, decision, reason },
  });
  const callKey = computeCallKey(input);
  const grant = await findCallGrant(db, run.execution_id, callKey);
  if (grant === null) return decide("deny", "the run has ended");
  if (grant.is_remembered === 1) return decide("allow", "allowed earlier in this conversation");
  if (!reachesPerson(deps, run.session_key)) return decide("deny", "nobody can be asked here");
  await runLimits.take(call, "approvals");
  const now = clock.now();
  const question: NewQuestion = {
    id: createId(),
    ...{ session_key: run.session_key, message_id: run.message_id, task_id: run.task_id },
    ...{ execution_id: run.execution_id, worker_id: run.worker_id },
    text: formatApproval(input),
    ...{ tool: input.tool, arguments: input.arguments, path: input.path ?? "", call_key: callKey },
    options: listApprovalOptions(hasConversation(run.session_key)),
    default: DENY,
    ...{ status: "open", answer: "", answered_by: "", answered_at: null, seen_at: null },
    created_at: now,
    expires_at: now + input.timeout_ms,
    asked_by: call.caller.subject,
    own_session: false,
    work_dir: "",
  };
  return {
    statements: openQuestion(question, now),
    response: { id: question.id, decision: "wait", reason: "" },
    lost: buildTooManyOpen,
  };
}

/** Waits for the decision like waitForQuestion(). Only the run that asked gets it, and only while it is not being ended. */
export async function waitForApproval(
  deps: Deps<"db" | "clock" | "wakeups" | "lifecycle" | "waits">,
  call: Call,
  id: string,
  limits: WaitLimits,
): Promise<Answer<ApprovalDecision>> {
  await findOwn(deps, call, id);
  const { json } = await waitForQuestion(deps, call, id, limits);
  return answer(decideBy(parseJson(json as Json<Question>)));
}

/** Cancels the open question of a call that its agent has dropped. */
export async function withdrawApproval(
  deps: Deps<"db" | "clock">,
  call: Call,
  id: string,
): Promise<Answer<ApprovalDecision>> {
  const question = await findOwn(deps, call, id);
  await deps.db.write(withdrawCall(question, call.caller.subject, deps.clock.now()));
  return answer(decideBy(await findOwn(deps, call, id), true));
}

function decideBy(question: Question, withdrawn = false): ApprovalDecision {
  const { id, status, answer: given, answered_by, seen_at } = question;
  if (status === "open") return { id, decision: "wait", reason: "" };
  if (status !== "answered") return { id, decision: "deny", reason: `the question is ${status}` };
  // An answer that the run has not taken came too late.
  if (seen_at === null || withdrawn) return { id, decision: "deny", reason: "the run has ended" };
  const reason = answered_by === BY_DEFAULT ? "nobody answered in time" : `answered by ${answered_by}`;
  return { id, decision: given === ALLOW || given === ALLOW_HERE ? "allow" : "deny", reason };
}

async function findOwn({ db }: Deps<"db">, call: Call, id: string): Promise<Question> {
  const run = requireRun(call);
  const json = await findQuestionJson(db, id, run.session_key);
  const question = json === null ? null : parseJson(json);
  if (question === null || question.tool === "" || question.execution_id !== run.execution_id) {
    throw notFound("question", id);
  }
  return question;
}

function requireRun({ caller }: Call): RunBinding {
  if (caller.run === null) {
    throw new ServiceError("forbidden", "Cannot do this: only the engine of a run can");
  }
  return caller.run;
}

// Programs send to webhooks, and a mail is read when its reader has time. Without a notice, no person sees a question there, except one who happens to look into the inbox.
function reachesPerson({ platforms, notices }: Deps<"platforms" | "notices">, sessionKey: string): boolean {
  if (isApiConversation(sessionKey)) return false;
  const isForPeople = (key: string) =>
    !["webhook", "email"].includes(platforms.get(parsePlatformName(key))?.rules.kind ?? "");
  if (!hasConversation(sessionKey) || isForPeople(sessionKey)) return true;
  return notices.some(({ on, to, program }) =>
    on.some((pattern) => matchNoticeKinds(pattern).includes("question.opened")) &&
    (program !== undefined || to !== undefined && (to.startsWith(TO_WEBHOOK) || isForPeople(to)))
  );
}
