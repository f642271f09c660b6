import { z } from "zod";
import { text } from "../call/field.ts";

/** Where a value of the effective configuration comes from. */
const SETTING_SOURCES = ["file", "environment", "default"] as const;

const SNIPPET_MAX_BYTES = 64 * 1024;

const settingSchema = z.strictObject({
  key: z.string(),
  value: z.string().meta({ description: "as in the file; lists and maps as JSON; secrets are hidden" }),
  source: z.enum(SETTING_SOURCES),
  at: z.string().meta({ description: "the file with its line, the variable, or empty" }),
}).meta({ id: "Setting" });
export type Setting = z.output<typeof settingSchema>;

const setupGuideSchema = z.strictObject({
  group: z.enum(["engine", "platform"]),
  kind: z.string(),
  title: z.string(),
  steps: z.array(z.string()),
  files: z.array(z.strictObject({ path: z.string(), content: z.string() }))
    .meta({ description: "the files of secrets that the lines name" }),
  yaml: z.string().meta({ description: "lines to adapt and to add to the configuration file" }),
}).meta({ id: "SetupGuide" });
export type SetupGuide = z.output<typeof setupGuideSchema>;

export const settingsSchema = z.strictObject({
  path: z.string().nullable().meta({ description: "the configuration file, or null without one" }),
  settings: z.array(settingSchema),
  guides: z.array(setupGuideSchema).meta({ description: "how to set up each kind of engine and platform" }),
}).meta({ id: "Settings" });
export type Settings = z.output<typeof settingsSchema>;

export const configCheckRequestSchema = z.strictObject({
  yaml: text(SNIPPET_MAX_BYTES).meta({
    description: "lines for config.yaml; the service does not store them",
  }),
}).meta({ id: "ConfigCheckRequest", examples: [{ yaml: "log:\n  level: debug" }] });

export const configCheckSchema = z.strictObject({
  valid: z.boolean(),
  problems: z.array(z.strictObject({ line: z.int(), column: z.int(), message: z.string() })),
  present: z.array(z.string()).meta({
    description: "top-level keys that the configuration file already has",
  }),
}).meta({ id: "ConfigCheck" });
export type ConfigCheck = z.output<typeof configCheckSchema>;
