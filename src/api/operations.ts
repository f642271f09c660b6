import * as device from "./account/device.ts";
import * as login from "./account/login.ts";
import * as oidcLogin from "./account/oidc_login.ts";
import * as secret from "./account/secret.ts";
import * as token from "./account/token.ts";
import * as user from "./account/user.ts";
import * as chat from "./chat/chat.ts";
import * as completion from "./chat/completion.ts";
import * as conversation from "./chat/conversation.ts";
import * as hook from "./chat/hook.ts";
import * as media from "./chat/media.ts";
import * as message from "./chat/message.ts";
import * as pairing from "./chat/pairing.ts";
import * as platform from "./chat/platform.ts";
import * as resend from "./chat/resend.ts";
import * as backup from "./system/backup.ts";
import * as doctor from "./system/doctor.ts";
import * as event from "./system/event.ts";
import * as inbox from "./system/inbox.ts";
import * as keyRotation from "./system/key_rotation.ts";
import * as metrics from "./system/metrics.ts";
import * as search from "./system/search.ts";
import * as settings from "./system/settings.ts";
import * as system from "./system/system.ts";
import * as webhook from "./system/webhook.ts";
import * as changes from "./work/changes.ts";
import * as execution from "./work/execution.ts";
import * as approval from "./work/approval.ts";
import * as question from "./work/question.ts";
import * as questionAsk from "./work/question_ask.ts";
import * as queue from "./work/queue.ts";
import * as steer from "./work/steer.ts";
import * as runnerProtocol from "./work/runner_protocol.ts";
import * as schedule from "./work/schedule.ts";
import * as task from "./work/task.ts";
import * as taskCreate from "./work/task_create.ts";
import * as taskRetry from "./work/task_retry.ts";
import * as budget from "./workers/budget.ts";
import * as department from "./workers/department.ts";
import * as engine from "./workers/engine.ts";
import * as fleet from "./workers/fleet.ts";
import * as memory from "./workers/memory.ts";
import * as launcher from "./workers/launcher.ts";
import * as runner from "./workers/runner.ts";
import * as skills from "./workers/skills.ts";
import * as usage from "./workers/usage.ts";
import * as worker from "./workers/worker.ts";
import * as workerDeletion from "./workers/worker_deletion.ts";
import * as workerHome from "./workers/worker_home.ts";
import * as workerStatus from "./workers/worker_status.ts";
import { makeIdempotent } from "./call/idempotency.ts";
import type { Services } from "./call/services.ts";
import type { SignInDeps } from "./account/sign_in.ts";
import { isMissingReference } from "../store/db/database.ts";

/** Everything that operations depend on. `boot` passes it in. */
export type Dependencies = Services & SignInDeps;

export type Operations = ReturnType<typeof createOperations>;

/** Binds every operation to its dependencies. To add an operation, write a function of dependencies and give it a name here. */
export function createOperations(dependencies: Dependencies) {
  const bind = <O extends Record<string, Operation>>(operations: O) =>
    bindOperations(dependencies, operations);
  return {
    auth: bind({
      logIn: login.logIn,
      refresh: login.refresh,
      logout: login.logout,
      getCookieScope: login.getCookieScope,
      whoami: login.describeCaller,
      createCode: login.createCode,
      beginOidc: oidcLogin.startOidc,
      finishOidc: oidcLogin.finishOidc,
    }),
    user: bind({
      list: user.listUsers,
      create: user.createUser,
      get: user.getUser,
      update: user.updateUser,
      delete: user.deleteUser,
      setPassword: user.setPassword,
    }),
    token: bind({ list: token.listTokens, create: token.createToken, delete: token.deleteToken }),
    device: bind({
      getKey: device.getPushKey,
      list: device.listDevices,
      create: makeIdempotent(device.planDevice),
      delete: device.deleteDevice,
    }),
    secret: bind({
      list: secret.listSecrets,
      get: secret.getSecret,
      put: secret.putSecret,
      delete: secret.deleteSecret,
    }),
    audit: bind({ list: event.listAudit }),
    worker: bind({
      create: worker.createWorker,
      list: worker.listWorkers,
      get: worker.getWorker,
      status: workerStatus.getWorkerStatus,
      update: worker.updateWorker,
      delete: workerDeletion.deleteWorker,
      rehome: workerHome.rehomeWorker,
      trees: changes.listWorkerTrees,
      checkSkill: skills.checkSkill,
    }),
    task: bind({
      create: makeIdempotent(taskCreate.planTask),
      createAll: makeIdempotent(taskCreate.planTasks),
      list: task.listTasks,
      get: task.getTask,
      update: schedule.updateTask,
      cancel: task.cancelTask,
      run: makeIdempotent(task.planRun),
      retry: makeIdempotent(taskRetry.planRetry),
      wait: task.waitForTask,
    }),
    schedule: bind({ list: schedule.listSchedules, preview: schedule.previewSchedule }),
    execution: bind({
      list: execution.listExecutions,
      listOfWorker: execution.listWorkerExecutions,
      get: execution.getExecution,
      cancel: execution.cancelExecution,
      retry: execution.retryExecution,
      steer: steer.steerExecution,
      readDiff: changes.readChanges,
      readStat: changes.readChangeStat,
      push: changes.pushBranch,
      discard: changes.discardBranch,
      findLog: execution.findLog,
    }),
    budget: bind({
      list: budget.listBudgets,
      create: makeIdempotent(budget.planBudget),
      get: budget.getBudget,
      update: budget.updateBudget,
      delete: budget.deleteBudget,
      lift: budget.liftBudget,
    }),
    fleet: bind({ export: fleet.exportFleet, plan: fleet.previewFleet, apply: fleet.applyFleet }),
    runner: bind({
      list: runner.listRunners,
      create: runner.createRunner,
      get: runner.getRunner,
      delete: runner.deleteRunner,
      drain: runner.drainRunner,
    }),
    launcher: bind({ list: launcher.listLaunchers, resume: launcher.resumeLauncher }),
    run: bind({
      openMedia: runnerProtocol.openRunMedia,
      openRepo: runnerProtocol.openRunRepo,
      storeCommits: runnerProtocol.storeRunCommits,
      claim: runnerProtocol.claimRun,
      beat: runnerProtocol.beatRuns,
      log: runnerProtocol.appendRunLog,
      events: runnerProtocol.reportRun,
      end: runnerProtocol.endRun,
    }),
    inbox: bind({ list: inbox.listInbox, dismiss: inbox.dismissItem }),
    question: bind({
      ask: makeIdempotent(questionAsk.planQuestion),
      list: question.listQuestions,
      get: question.getQuestion,
      wait: question.waitForQuestion,
      answer: question.answerQuestion,
      cancel: question.cancelQuestion,
    }),
    approval: bind({
      request: makeIdempotent(approval.planApproval),
      wait: approval.waitForApproval,
      withdraw: approval.withdrawApproval,
      list: conversation.listApprovals,
    }),
    queue: bind({ list: queue.listQueue, cancel: queue.cancelQueue }),
    engine: bind({ list: engine.listEngines, get: engine.getEngine, lift: engine.liftEngine }),
    usage: bind({ list: usage.listUsage, series: usage.listSeries, activity: usage.listActivity }),
    conversation: bind({ list: conversation.listConversations }),
    session: bind({
      list: conversation.listContexts,
      clear: conversation.clearSession,
      clearWorker: conversation.clearWorkerContext,
    }),
    memory: bind({
      list: memory.listMemory,
      get: memory.getMemory,
      save: memory.saveMemory,
      delete: memory.deleteMemory,
    }),
    department: bind({
      list: department.listDepartments,
      create: makeIdempotent(department.planDepartment),
      get: department.getDepartment,
      update: department.updateDepartment,
      delete: department.deleteDepartment,
    }),
    message: bind({
      send: message.sendMessage,
      prepareAttachment: message.prepareAttachment,
      list: message.listInbound,
      listOutbound: message.listOutbound,
      trace: message.traceMessage,
      explain: message.explainMessage,
      resend: makeIdempotent(resend.planResend),
      resendAll: makeIdempotent(resend.planResends),
    }),
    completion: bind({
      listModels: completion.listModels,
      start: completion.startCompletion,
      read: completion.readCompletion,
      wait: completion.waitForCompletion,
      awaitStart: completion.awaitStart,
      end: completion.endCompletion,
      listSteps: completion.listSteps,
    }),
    hook: bind({ receive: hook.receiveHook }),
    platform: bind({
      list: platform.listPlatforms,
      get: platform.getPlatform,
      senders: platform.listSenders,
      pair: pairing.pair,
      revoke: platform.revokeSender,
      test: platform.testPlatform,
    }),
    webhook: bind({
      list: webhook.listWebhooks,
      get: webhook.getWebhook,
      create: makeIdempotent(webhook.planWebhook),
      update: webhook.updateWebhook,
      delete: webhook.deleteWebhook,
      test: webhook.testWebhook,
      deliveries: webhook.listDeliveries,
      replay: webhook.replayWebhook,
    }),
    chat: bind({
      create: makeIdempotent(chat.planSession),
      list: chat.listSessions,
      get: chat.getSession,
      update: chat.updateSession,
      delete: chat.deleteSession,
      send: makeIdempotent(chat.planMessage),
      messages: chat.listMessages,
      prepareUpload: media.prepareUpload,
      keepUpload: media.storeUpload,
      openMedia: media.openMedia,
      findStreamStart: conversation.findStreamStart,
      readStream: conversation.readConversation,
    }),
    search: bind({ find: search.search, recall: search.recall }),
    event: bind({ list: event.listEvents, findStart: event.findEventStart, read: event.readEvents }),
    system: bind({
      overview: system.getOverview,
      executions: system.listBeeRuns,
      doctor: doctor.examine,
      password: system.changePassword,
      backup: backup.createBackup,
      resume: system.resume,
      rotateKey: keyRotation.rotateKey,
      settings: settings.getSettings,
      checkSettings: settings.checkSettings,
      metrics: metrics.readMetrics,
      readiness: system.findReadiness,
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
