import { z } from "zod";
import { buildBackupName } from "../../domain/system/backup.ts";
import { beeRunSchema } from "../../domain/chat/bee_run.ts";
import {
  backupRequestSchema,
  beeRunQuery,
  doctorSchema,
  keyRotatedSchema,
  overviewSchema,
  passwordChangedSchema,
  passwordChangeSchema,
  resumedSchema,
} from "../../domain/system/system.ts";
import { configCheckRequestSchema, configCheckSchema, settingsSchema } from "../../domain/system/settings.ts";
import { defineRoute } from "../route.ts";

export const systemRoutes = [
  defineRoute("GET /api/system/overview", {
    access: "read:system",
    operation: "system.overview",
    summary: "Get totals by state, the usage of today and the latest runs",
    response: overviewSchema,
    handle: ({ api, call }) => api.system.overview(call),
  }),
  defineRoute("GET /api/system/executions", {
    access: "read:system",
    operation: "system.executions",
    summary: "List the coordinator's latest runs, newest first",
    query: beeRunQuery,
    response: z.array(beeRunSchema),
    handle: ({ api, call, query }) => api.system.executions(call, query),
  }),
  defineRoute("GET /api/system/doctor", {
    access: "read:system",
    operation: "system.doctor",
    summary: "Check the service: each check is ok, warn or fail, with a remedy",
    description:
      "Refused for runs that are bound to a conversation, because the answer describes the machine.",
    response: doctorSchema,
    handle: ({ api, call }) => api.system.doctor(call),
  }),
  defineRoute("PUT /api/system/password", {
    access: "write:system",
    operation: "system.password",
    summary: "Change the operator's password; older tokens become invalid",
    description: "Refused for runs, and while the configuration or the environment sets the password.",
    body: passwordChangeSchema,
    response: passwordChangedSchema,
    handle: ({ api, call, body, address }) => api.system.password(call, body, address),
  }),
  defineRoute("POST /api/system/backup", {
    access: "write:system",
    operation: "system.backup",
    summary: "Create a backup: a tar archive of database, uploads and logs, with the signing key on request",
    description:
      "`include_key` needs the caller's password, because the signing key gives every right. An archive without the last entry SHA256SUMS is incomplete. " +
      "Restore it with `svc restore`. Refused for runs, and on a libSQL server, which has its own backup.",
    body: backupRequestSchema,
    response: z.string(),
    responseType: "application/x-tar",
    handle: async ({ api, call, body, address }) => {
      const { archive, createdAt } = await api.system.backup(call, body, address);
      const headers = {
        "content-type": "application/x-tar",
        "content-disposition": `attachment; filename="${buildBackupName(createdAt)}"`,
        "cache-control": "no-store",
      };
      return new Response(archive, { headers });
    },
  }),
  defineRoute("POST /api/system/resume", {
    access: "write:system",
    operation: "system.resume",
    summary: "Resume the schedules that a restore paused",
    description: "Times during the pause count as missed (scheduler.catch_up_window).",
    body: z.strictObject({}),
    response: resumedSchema,
    handle: ({ api, call }) => api.system.resume(call),
  }),
  defineRoute("GET /api/system/config", {
    access: "write:system",
    operation: "system.config",
    summary: "Get the effective configuration: every value, and the line or variable that sets it",
    description: "As of the start of the process. Secrets are hidden. Refused for runs.",
    response: settingsSchema,
    handle: ({ api }) => api.system.settings(),
  }),
  defineRoute("POST /api/system/config/check", {
    access: "write:system",
    operation: "system.check_config",
    summary: "Check lines for the configuration file without storing them",
    description:
      "Reports every problem with its line. Reads no file, also not those that `<secret>_file` names. Refused for runs.",
    body: configCheckRequestSchema,
    response: configCheckSchema,
    handle: ({ api, body }) => api.system.checkSettings(body),
  }),
  defineRoute("POST /api/system/rotate-key", {
    access: "write:system",
    operation: "system.rotate_key",
    summary: "Create a new signing key; all logins and tokens become invalid",
    description: "Refused while runs are active, for runs, and while auth.jwt_secret sets the key.",
    body: z.strictObject({}),
    response: keyRotatedSchema,
    handle: ({ api, call }) => api.system.rotateKey(call),
  }),
] as const;
