import { findEventStart, listAudit, listEvents, readEvents } from "./system/event.ts";
import { createCode, describeCaller, getCookieScope, logIn, logout, refresh } from "./account/login.ts";
import {
  changePassword,
  findReadiness,
  getOverview,
  listBeeRuns,
  resume,
  rotateKey,
} from "./system/system.ts";
import { finishOidc, startOidc } from "./account/oidc_login.ts";
import { createToken, deleteToken, listTokens } from "./account/token.ts";
import { createUser, deleteUser, getUser, listUsers, setPassword, updateUser } from "./account/user.ts";
import { askQuestion } from "./work/question_ask.ts";
import {
  createBudget,
  deleteBudget,
  getBudget,
  liftBudget,
  listBudgets,
  updateBudget,
} from "./workers/budget.ts";
import { createBackup } from "./system/backup.ts";
import {
  createSession,
  deleteSession,
  getSession,
  listMessages,
  listSessions,
  sendMessage as sendChatMessage,
  updateSession,
} from "./chat/chat.ts";
import {
  clearSession,
  clearWorkerContext,
  findStreamStart,
  listContexts,
  listConversations,
  readConversation,
} from "./chat/conversation.ts";
import {
  createDepartment,
  deleteDepartment,
  getDepartment,
  listDepartments,
  updateDepartment,
} from "./workers/department.ts";
import { examine } from "./system/doctor.ts";
import {
  explainMessage,
  listInbound,
  listOutbound,
  prepareAttachment,
  sendMessage,
  traceMessage,
} from "./chat/message.ts";
import { applyFleet, exportFleet, previewFleet } from "./workers/fleet.ts";
import { getEngine, liftEngine, listEngines } from "./workers/engine.ts";
import {
  cancelExecution,
  findLog,
  getExecution,
  listExecutions,
  listWorkerExecutions,
  retryExecution,
} from "./work/execution.ts";
import { receiveHook } from "./chat/hook.ts";
import { listInbox } from "./system/inbox.ts";
import {
  answerQuestion,
  cancelQuestion,
  getQuestion,
  listQuestions,
  waitForQuestion,
} from "./work/question.ts";
import { cancelQueue, listQueue } from "./work/queue.ts";
import { listSeries, listUsage } from "./workers/usage.ts";
import { openMedia, prepareUpload, storeUpload } from "./chat/media.ts";
import { deleteMemory, getMemory, listMemory, saveMemory } from "./workers/memory.ts";
import { readMetrics } from "./system/metrics.ts";
import { pair } from "./chat/pairing.ts";
import type { Services } from "./call/services.ts";
import type { SignInDeps } from "./account/sign_in.ts";
import { resendMessage, resendMessages } from "./chat/resend.ts";
import { appendRunLog, beatRuns, claimRun, endRun, openRunMedia, reportRun } from "./work/runner_protocol.ts";
import { createRunner, deleteRunner, drainRunner, getRunner, listRunners } from "./workers/runner.ts";
import { getPlatform, listPlatforms, listSenders, revokeSender, testPlatform } from "./chat/platform.ts";
import { listSchedules, previewSchedule, updateTask } from "./work/schedule.ts";
import { cancelTask, getTask, listTasks, runTask, waitForTask } from "./work/task.ts";
import { createTask, createTasks } from "./work/task_create.ts";
import { isMissingReference } from "../store/db/database.ts";
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listDeliveries,
  listWebhooks,
  replayWebhook,
  testWebhook,
  updateWebhook,
} from "./system/webhook.ts";
import { createWorker, getWorker, listWorkers, updateWorker } from "./workers/worker.ts";
import { deleteWorker } from "./workers/worker_deletion.ts";
import { rehomeWorker } from "./workers/worker_home.ts";
import { getWorkerStatus } from "./workers/worker_status.ts";

/** Everything that operations depend on. `boot` passes it in. */
export type Dependencies = Services & SignInDeps;

export type Operations = ReturnType<typeof createOperations>;

/** Binds every operation to its dependencies. To add an operation, write a function of dependencies and give it a name here. */
export function createOperations(dependencies: Dependencies) {
  const bind = <O extends Record<string, Operation>>(operations: O) =>
    bindOperations(dependencies, operations);
  return {
    auth: bind({
      logIn,
      refresh,
      logout,
      place: getCookieScope,
      whoami: describeCaller,
      createCode,
      beginOidc: startOidc,
      finishOidc,
    }),
    user: bind({
      list: listUsers,
      create: createUser,
      get: getUser,
      update: updateUser,
      delete: deleteUser,
      setPassword,
    }),
    token: bind({ list: listTokens, create: createToken, delete: deleteToken }),
    audit: bind({ list: listAudit }),
    worker: bind({
      create: createWorker,
      list: listWorkers,
      get: getWorker,
      status: getWorkerStatus,
      update: updateWorker,
      delete: deleteWorker,
      rehome: rehomeWorker,
    }),
    task: bind({
      create: createTask,
      createAll: createTasks,
      list: listTasks,
      get: getTask,
      update: updateTask,
      cancel: cancelTask,
      run: runTask,
      wait: waitForTask,
    }),
    schedule: bind({ list: listSchedules, preview: previewSchedule }),
    execution: bind({
      list: listExecutions,
      listOfWorker: listWorkerExecutions,
      get: getExecution,
      cancel: cancelExecution,
      retry: retryExecution,
      findLog,
    }),
    budget: bind({
      list: listBudgets,
      create: createBudget,
      get: getBudget,
      update: updateBudget,
      delete: deleteBudget,
      lift: liftBudget,
    }),
    fleet: bind({ export: exportFleet, plan: previewFleet, apply: applyFleet }),
    runner: bind({
      list: listRunners,
      create: createRunner,
      get: getRunner,
      delete: deleteRunner,
      drain: drainRunner,
    }),
    run: bind({
      openMedia: openRunMedia,
      claim: claimRun,
      beat: beatRuns,
      log: appendRunLog,
      events: reportRun,
      end: endRun,
    }),
    inbox: bind({ list: listInbox }),
    question: bind({
      ask: askQuestion,
      list: listQuestions,
      get: getQuestion,
      wait: waitForQuestion,
      answer: answerQuestion,
      cancel: cancelQuestion,
    }),
    queue: bind({ list: listQueue, cancel: cancelQueue }),
    engine: bind({ list: listEngines, get: getEngine, lift: liftEngine }),
    usage: bind({ list: listUsage, series: listSeries }),
    conversation: bind({ list: listConversations }),
    session: bind({ list: listContexts, clear: clearSession, clearWorker: clearWorkerContext }),
    memory: bind({ list: listMemory, get: getMemory, save: saveMemory, delete: deleteMemory }),
    department: bind({
      list: listDepartments,
      create: createDepartment,
      get: getDepartment,
      update: updateDepartment,
      delete: deleteDepartment,
    }),
    message: bind({
      send: sendMessage,
      prepareAttachment,
      list: listInbound,
      listOutbound,
      trace: traceMessage,
      explain: explainMessage,
      resend: resendMessage,
      resendAll: resendMessages,
    }),
    hook: bind({ receive: receiveHook }),
    platform: bind({
      list: listPlatforms,
      get: getPlatform,
      senders: listSenders,
      pair,
      revoke: revokeSender,
      test: testPlatform,
    }),
    webhook: bind({
      list: listWebhooks,
      get: getWebhook,
      create: createWebhook,
      update: updateWebhook,
      delete: deleteWebhook,
      test: testWebhook,
      deliveries: listDeliveries,
      replay: replayWebhook,
    }),
    chat: bind({
      create: createSession,
      list: listSessions,
      get: getSession,
      update: updateSession,
      delete: deleteSession,
      send: sendChatMessage,
      messages: listMessages,
      prepareUpload,
      keepUpload: storeUpload,
      openMedia,
      findStreamStart,
      readStream: readConversation,
    }),
    event: bind({ list: listEvents, findStart: findEventStart, read: readEvents }),
    system: bind({
      overview: getOverview,
      executions: listBeeRuns,
      doctor: examine,
      password: changePassword,
      backup: createBackup,
      resume,
      rotateKey,
      metrics: readMetrics,
      readiness: findReadiness,
    }),
  };
}

type Operation = (dependencies: Dependencies, ...input: never[]) => unknown;

type BoundOperations<O> = {
  [K in keyof O]: O[K] extends (dependencies: never, ...input: infer I) => infer A ? (...input: I) => A
    : never;
};

// An operation with an unknown dependency is a type error here.
function bindOperations<O extends Record<string, Operation>>(
  dependencies: Dependencies,
  operations: O,
): BoundOperations<O> {
  const bound = Object.entries(operations).map(([name, operation]) =>
    [name, retryMissingReference(operation.bind(null, dependencies))] as const
  );
  return Object.fromEntries(bound) as BoundOperations<O>;
}

// When an object is deleted between an operation's check and its write, a second run reports what is missing.
function retryMissingReference<I extends unknown[]>(
  operation: (...input: I) => unknown,
): (...input: I) => unknown {
  return (...input) => {
    const answer = operation(...input);
    if (!(answer instanceof Promise)) return answer;
    return answer.catch((error) => {
      if (!isMissingReference(error)) throw error;
      return operation(...input);
    });
  };
}
