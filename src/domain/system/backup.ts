import { z } from "zod";
import { time } from "../call/field.ts";

/** Version of the archive layout. */
export const BACKUP_FORMAT = 1;

export const BACKUP = {
  manifest: "manifest.json",
  database: "svc.db",
  secretKey: "secret.key",
  uploads: "uploads",
  logs: "logs",
} as const;

/** The first entry of a backup. */
export const manifestSchema = z.object({
  backup: z.literal("svc"),
  format: z.literal(BACKUP_FORMAT),
  created_at: time,
  svc_version: z.string(),
  schema_version: z.int().min(1),
  /** Absolute. Paths in the database start with it. */
  data_dir: z.string(),
  counts: z.object({ workers: z.int(), tasks: z.int(), executions: z.int() }),
});
export type Manifest = z.output<typeof manifestSchema>;

export function buildBackupName(at: number): string {
  return `svc-${new Date(at).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-")}.tar`;
}
