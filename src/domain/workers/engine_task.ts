/** The needs of a run that its engine has to meet. */
export interface EngineNeeds {
  /** 1 when its worker needs a box, and other engines or runners may run it. */
  boxed: number;
  /** Names of the worker's variables when other engines may run it, as a JSON list. */
  env_names: string;
  /** The worker's MCP servers as JSON. */
  mcp: string;
  /** 1 when its worker has skills. */
  has_skills: number;
  /** 1 when it has a gate or a check. */
  has_commands: number;
}

/** The fields of a task that decide which engine runs it. */
export interface EngineTask extends EngineNeeds {
  worker_id: string;
  /** The worker's engine; "" for the default. */
  engine: string;
  /** 1 when other engines may replace it. */
  fallback: number;
  /** The engine whose agent has said or done something in the current attempt, or "". */
  acted_engine: string;
  /** The engines that could not be used in the current attempt, as a JSON list. */
  unusable_engines: string;
}
