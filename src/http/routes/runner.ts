import { z } from "zod";
import { deletedSchema } from "../../domain/call/deleted.ts";
import { id, line, NAME_MAX_BYTES } from "../../domain/call/field.ts";
import {
  LOG_CHUNK_MAX_BYTES,
  REPO_CHUNK_MAX_BYTES,
  RUN_END_MAX_BYTES,
  runEndSchema,
  runEventsSchema,
  runLoggedSchema,
  runLogQuery,
  runnerBeatSchema,
  runnerClaimedSchema,
  runnerClaimSchema,
  runnerCreatedSchema,
  runnerCreateSchema,
  runnerDrainSchema,
  runnerHeardSchema,
  runnerListQuery,
  runnerSchema,
  runRepoQuery,
  runStoredSchema,
} from "../../domain/workers/runner.ts";
import { launcherSchema } from "../../domain/workers/launcher.ts";
import { buildDownload } from "../stream/download.ts";
import { readBody } from "../input.ts";
import { buildStreamedJson } from "../stream/streamed_json.ts";
import { defineRoute } from "../route.ts";

const idOrName = line(NAME_MAX_BYTES).meta({ description: "id or name" });

export const runnerRoutes = [
  defineRoute("GET /api/runners", {
    access: "read:runners",
    operation: "runner.list",
    summary: "List runners, newest first",
    query: runnerListQuery,
    response: z.array(runnerSchema),
    handle: ({ api, query }) => api.runner.list(query),
  }),
  defineRoute("POST /api/runners", {
    access: "write:runners",
    operation: "runner.create",
    summary: "Create a runner; only this response contains its token",
    body: runnerCreateSchema,
    status: 201,
    response: runnerCreatedSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.runner.create(call, body),
  }),
  defineRoute("GET /api/runners/:id_or_name", {
    access: "read:runners",
    operation: "runner.get",
    summary: "Get a runner",
    params: { id_or_name: idOrName },
    response: runnerSchema,
    handle: ({ api, params }) => api.runner.get(params.id_or_name),
  }),
  defineRoute("DELETE /api/runners/:id_or_name", {
    access: "write:runners",
    operation: "runner.delete",
    summary:
      "Delete a runner: its token is invalid immediately, and its runs are lost when their leases expire",
    params: { id_or_name: idOrName },
    response: deletedSchema,
    handle: ({ api, call, params }) => api.runner.delete(call, params.id_or_name),
  }),
  defineRoute("POST /api/runners/:id_or_name/drain", {
    access: "write:runners",
    operation: "runner.drain",
    summary: "Drain a runner, or send it runs again",
    params: { id_or_name: idOrName },
    body: runnerDrainSchema,
    response: runnerSchema,
    handle: ({ api, call, params, body }) => api.runner.drain(call, params.id_or_name, body.draining),
  }),
  defineRoute("GET /api/launchers", {
    access: "read:runners",
    operation: "launcher.list",
    summary: "List the launchers of the configuration",
    response: z.array(launcherSchema),
    handle: ({ api }) => api.launcher.list(),
  }),
  defineRoute("POST /api/launchers/:name/resume", {
    access: "write:runners",
    operation: "launcher.resume",
    summary: "Resume a launcher that failed starts have paused",
    params: { name: line(NAME_MAX_BYTES).meta({ description: "name in the configuration" }) },
    response: launcherSchema,
    handle: ({ api, call, params }) => api.launcher.resume(call, params.name),
  }),
  defineRoute("POST /api/runners/claim", {
    access: "write:runs",
    operation: "run.claim",
    summary: "Claim a run; waits until one exists",
    description: "For runners. A repeated `request_id` returns the same run.",
    body: runnerClaimSchema,
    response: runnerClaimedSchema,
    refusals: [409],
    handle: async ({ api, call, body }) => buildStreamedJson(await api.run.claim(call, body)),
  }),
  defineRoute("POST /api/runners/beat", {
    access: "write:runs",
    operation: "run.beat",
    summary: "Renew the leases of a runner's runs",
    description: "For runners. A run that is missing in the answer no longer belongs to the runner.",
    body: runnerBeatSchema,
    response: runnerHeardSchema,
    refusals: [409],
    handle: ({ api, call, body }) => api.run.beat(call, body),
  }),
  defineRoute("POST /api/runs/:id/log", {
    access: "write:runs",
    operation: "run.log",
    summary: "Append to the log of a run",
    description: "For runners. Repeated bytes have no effect.",
    params: { id },
    query: runLogQuery,
    response: runLoggedSchema,
    refusals: [409],
    handle: async ({ api, call, params, query, raw, streams }) => {
      const bytes = await readBody(raw, LOG_CHUNK_MAX_BYTES, streams.clock);
      return await api.run.log(call, params.id, { part: query, bytes });
    },
  }),
  defineRoute("POST /api/runs/:id/events", {
    access: "write:runs",
    operation: "run.events",
    summary: "Report the progress of a run",
    description: "For runners. Reports with known numbers have no effect.",
    params: { id },
    body: runEventsSchema,
    response: runStoredSchema,
    refusals: [409],
    handle: ({ api, call, params, body }) => api.run.events(call, params.id, body),
  }),
  defineRoute("POST /api/runs/:id/end", {
    access: "write:runs",
    operation: "run.end",
    summary: "Report the end of a run",
    description: "For runners. A repeated report has no effect.",
    params: { id },
    body: runEndSchema,
    bodyMaxBytes: RUN_END_MAX_BYTES,
    response: runStoredSchema,
    refusals: [409],
    handle: ({ api, call, params, body }) => api.run.end(call, params.id, body),
  }),
  defineRoute("GET /api/runs/:id/media/:name", {
    access: "write:runs",
    operation: "run.media",
    summary: "Download a file from the message of a run",
    description: "For runners.",
    params: { id, name: z.string().min(1).max(300) },
    response: z.string(),
    responseType: "*/*",
    refusals: [409],
    handle: async ({ api, call, params }) =>
      buildDownload(await api.run.openMedia(call, params.id, params.name)),
  }),
  defineRoute("GET /api/runs/:id/repo", {
    access: "write:runs",
    operation: "run.repo",
    summary: "Download the branch that a run works on, as a git bundle",
    description: "For runners. 409 has the reason why the run cannot have its branch.",
    params: { id },
    response: z.string(),
    responseType: "*/*",
    refusals: [409],
    handle: async ({ api, call, params }) => buildDownload(await api.run.openRepo(call, params.id)),
  }),
  defineRoute("PUT /api/runs/:id/repo", {
    access: "write:runs",
    operation: "run.commits",
    summary: "Upload a part of the git bundle with the commits of a run",
    description: "For runners. Repeated bytes have no effect.",
    params: { id },
    query: runRepoQuery,
    response: runLoggedSchema,
    refusals: [409],
    handle: async ({ api, call, params, query, raw, streams }) => {
      const bytes = await readBody(raw, REPO_CHUNK_MAX_BYTES, streams.clock);
      return await api.run.storeCommits(call, params.id, { part: query, bytes });
    },
  }),
] as const;
