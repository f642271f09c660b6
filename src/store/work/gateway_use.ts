import { WAKEUP } from "../../base/wakeups.ts";
import type { Usage } from "../../domain/work/execution.ts";
import type { Database, Statement } from "../db/database.ts";

/** The engine of a run, and the gateways of its worker as JSON. */
interface GatewayGrant {
  engine: string;
  gateways: string;
}

/** Finds the engine and the worker's gateways of a run. Null for an unknown run. */
export function findGatewayGrant(db: Database, executionId: string): Promise<GatewayGrant | null> {
  return db.first<GatewayGrant>(
    `select engine, coalesce((select gateways from worker where id = worker_id), '[]') as gateways
    from execution
    where id = ?
    union all
    select engine, '[]' from bee_run where id = ?`,
    [executionId, executionId],
  );
}

/** Lists the gateways of a worker, [] for the coordinator. */
export async function listWorkerGateways(db: Database, workerId: string): Promise<string[]> {
  return JSON.parse(
    await db.readValue<string>("select gateways from worker where id = ?", [workerId]) ?? "[]",
  );
}

/** More use of a gateway by a run. */
export interface GatewayUse {
  requests: number;
  refused: number;
  answers: number;
  estimated: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number | null;
}

/** Adds to the use of a gateway by an open run. Does nothing for a run that has ended. */
export function addGatewayUse(executionId: string, gateway: string, use: GatewayUse): Statement {
  const { requests, refused, answers, estimated, input_tokens, output_tokens, cost_usd } = use;
  return {
    sql: `insert into gateway_use
        (execution_id, gateway, requests, refused, answers, estimated, input_tokens, output_tokens, cost_usd)
      select execution_id, ?, ?, ?, ?, ?, ?, ?, ? from reservation where execution_id = ?
      on conflict (execution_id, gateway) do update set
        requests = requests + excluded.requests,
        refused = refused + excluded.refused,
        answers = answers + excluded.answers,
        estimated = estimated + excluded.estimated,
        input_tokens = input_tokens + excluded.input_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        cost_usd = iif(excluded.cost_usd is null, cost_usd, coalesce(cost_usd, 0) + excluded.cost_usd)`,
    args: [
      ...[gateway, requests, refused, answers, estimated, input_tokens, output_tokens, cost_usd],
      executionId,
    ],
    ...(answers + input_tokens + output_tokens > 0 ? { wakeup: WAKEUP.budget } : {}),
  };
}

/** The end of a select over the counted answers of a run. `id` is a column. */
export function selectCounted(id: string): string {
  return `from gateway_use where gateway_use.execution_id = ${id} and answers > 0`;
}

/** Finds the usage of an open run that gateways counted. Null if they counted nothing. */
export async function findCountedUsage(db: Database, executionId: string): Promise<Usage | null> {
  const counted = await db.first<Usage>(
    `select sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens, sum(cost_usd) as cost_usd
    ${selectCounted("?")}`,
    [executionId],
  );
  return counted?.input_tokens === null ? null : counted;
}
