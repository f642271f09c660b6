import { z } from "zod";
import { executionListQuery, executionSchema, logQuery } from "../../domain/work/execution.ts";
import { id, KEY_MAX_BYTES } from "../../domain/call/field.ts";
import { steerCreateSchema, steerSchema } from "../../domain/work/steer.ts";
import { diffQuery, diffStatSchema, treeSchema } from "../../domain/work/tree.ts";
import { taskSchema } from "../../domain/work/task.ts";
import { buildLogResponse } from "../stream/log_stream.ts";
import { defineRoute } from "../route.ts";

const { worker_id: _worker, ...workerExecutionQuery } = executionListQuery;
const { session_id: _session, ...sessionExecutionQuery } = executionListQuery;

export const executionRoutes = [
  defineRoute("GET /api/executions", {
    access: "read:executions",
    operation: "execution.list",
    summary: "List executions, newest first",
    query: executionListQuery,
    response: z.array(executionSchema),
    handle: ({ api, call, query }) => api.execution.list(call, query),
  }),
  defineRoute("GET /api/executions/:id", {
    access: "read:executions",
    operation: "execution.get",
    summary: "Get an execution",
    params: { id },
    response: executionSchema,
    handle: ({ api, call, params }) => api.execution.get(call, params.id),
  }),
  defineRoute("GET /api/executions/:id/logs", {
    access: "read:executions",
    operation: "execution.logs",
    summary: "Read the log of an execution",
    params: { id },
    query: logQuery,
    response: z.string(),
    responseType: "text/plain",
    handle: async ({ api, streams, call, params, query }) => {
      const { follow, tail, raw } = query;
      const find = () => api.execution.findLog(call, params.id, raw);
      const log = await find();
      const again = async () => await call.findAccessEnd() === null ? await find() : null;
      return await buildLogResponse(streams, { ...log, executionId: params.id, follow, tail, again });
    },
  }),
  defineRoute("POST /api/executions/:id/cancel", {
    access: "write:executions",
    operation: "execution.cancel",
    summary: "End a run and its whole process tree",
    params: { id },
    body: z.strictObject({}),
    response: executionSchema,
    handle: ({ api, call, params }) => api.execution.cancel(call, params.id),
  }),
  defineRoute("POST /api/executions/:id/retry", {
    access: "write:executions",
    operation: "execution.retry",
    summary: "Create a new task for the same worker, with the same instruction and conversation",
    params: { id },
    body: z.strictObject({}),
    status: 201,
    response: taskSchema,
    idempotent: true,
    handle: ({ api, call, params }) => api.execution.retry(call, params.id),
  }),
  defineRoute("POST /api/executions/:id/steer", {
    access: "write:executions",
    operation: "execution.steer",
    summary: "Send words to the agent of a run in progress",
    params: { id },
    body: steerCreateSchema,
    status: 202,
    response: steerSchema,
    idempotent: true,
    handle: ({ api, call, params, body }) => api.execution.steer(call, params.id, body),
  }),
  defineRoute("GET /api/executions/:id/diff", {
    access: "read:executions",
    operation: "execution.diff",
    summary: "Read the changes of an execution in the repository of its worker",
    params: { id },
    query: diffQuery,
    response: z.string(),
    responseType: "text/x-diff",
    jsonResponse: diffStatSchema,
    refusals: [409],
    handle: async ({ api, call, params, query }) => {
      if (query.stat) {
        const { json } = await api.execution.readStat(call, params.id, query.since);
        return new Response(json, { headers: { "content-type": "application/json" } });
      }
      const diff = await api.execution.readDiff(call, params.id, query.since);
      return new Response(diff, { headers: { "content-type": "text/x-diff; charset=utf-8" } });
    },
  }),
  defineRoute("POST /api/executions/:id/push", {
    access: "write:executions",
    operation: "execution.push",
    summary: "Push the branch of an execution",
    params: { id },
    body: z.strictObject({}),
    response: treeSchema,
    refusals: [409, 502],
    handle: ({ api, call, params }) => api.execution.push(call, params.id),
  }),
  defineRoute("POST /api/executions/:id/discard", {
    access: "write:executions",
    operation: "execution.discard",
    summary: "Delete the branch of an execution here, with its worktree and the commits that were not pushed",
    params: { id },
    body: z.strictObject({}),
    response: treeSchema,
    refusals: [409],
    handle: ({ api, call, params }) => api.execution.discard(call, params.id),
  }),
  defineRoute("GET /api/workers/:id/executions", {
    access: "read:executions",
    operation: "execution.list_of_worker",
    summary: "List the executions of a worker",
    params: { id },
    query: workerExecutionQuery,
    response: z.array(executionSchema),
    handle: ({ api, call, params, query }) => api.execution.listOfWorker(call, params.id, query),
  }),
  defineRoute("GET /api/sessions/:sessionId/executions", {
    access: "read:executions",
    operation: "execution.list_of_session",
    summary: "List the executions of a session, given its session id, session key or local session",
    params: { sessionId: z.string().min(1).max(KEY_MAX_BYTES * 4) },
    query: sessionExecutionQuery,
    response: z.array(executionSchema),
    handle: ({ api, call, params, query }) =>
      api.execution.list(call, { ...query, session_id: [params.sessionId] }),
  }),
] as const;
