import { z } from "zod";
import { ConfigError, readConfigSource, resolveConfigPath } from "./file.ts";
import { formatProblems } from "./problem.ts";
import { checkEngines, enginesSchema } from "./engine.ts";
import { limitsSchema } from "./limits.ts";
import { buildCountSchema } from "./value.ts";
import { isolationConfigSchema } from "../domain/workers/isolation.ts";
import { RUNS_PER_RUNNER_MAX } from "../domain/workers/runner.ts";

const ROOT_DEFAULT = "runner";

const runnerConfigSchema = z.strictObject({
  work_root: z.string().min(1).optional(),
  max_runs: buildCountSchema(4, 1, RUNS_PER_RUNNER_MAX),
  engines: enginesSchema,
  isolation: isolationConfigSchema.prefault({}),
});

/** A runner's settings, with absolute paths. */
export interface RunnerConfig extends Omit<z.output<typeof runnerConfigSchema>, "work_root"> {
  /** Default: the folder `runner` next to the file, or in the current directory. */
  work_root: string;
  /** Whether the file has a work_root. */
  namesRoot: boolean;
  /** The defaults of a service, for ending programs and limiting their output. */
  limits: z.output<typeof limitsSchema>;
  /** The file of these settings, or null. */
  path: string | null;
}

/** Reads the file of `-c`, or uses the defaults. Throws ConfigError with position and remedy. */
export async function loadRunnerConfig(flag: string | undefined): Promise<RunnerConfig> {
  const limits = limitsSchema.parse({});
  if (flag === undefined) {
    const config = runnerConfigSchema.parse({});
    const work_root = resolveConfigPath(Deno.cwd(), ROOT_DEFAULT);
    return { ...config, limits, path: null, work_root, namesRoot: false };
  }
  const source = await readConfigSource(flag);
  const input = source.document?.toJS() ?? {};
  if (typeof input !== "object" || Array.isArray(input)) {
    throw new ConfigError(`${source.path}:1:1: must be a map of keys, such as "work_root:"`);
  }
  const result = runnerConfigSchema.safeParse(input);
  if (!result.success) {
    throw new ConfigError(formatProblems(result.error, source, { schema: runnerConfigSchema }).join("\n"));
  }
  const config = result.data;
  checkEngines(config.engines, source);
  return {
    ...config,
    limits,
    path: source.path,
    work_root: resolveConfigPath(source.base, config.work_root ?? ROOT_DEFAULT),
    namesRoot: config.work_root !== undefined,
  };
}
