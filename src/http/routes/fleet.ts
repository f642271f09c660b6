import {
  exportSchema,
  FLEET_MAX_BYTES,
  fleetApplyInput,
  fleetPlanInput,
  fleetPlanSchema,
} from "../../domain/workers/fleet.ts";
import { defineRoute } from "../route.ts";

export const fleetRoutes = [
  defineRoute("GET /api/fleet", {
    access: "write:fleet",
    operation: "fleet.export",
    summary: "Export departments, workers, schedules, budgets and shared memory as a fleet, without secrets",
    refusals: [409, 413],
    response: exportSchema,
    handle: ({ api, call }) => api.fleet.export(call),
  }),
  defineRoute("POST /api/fleet/plan", {
    access: "write:fleet",
    operation: "fleet.plan",
    summary: "Plan an apply: list its changes without making them",
    body: fleetPlanInput,
    bodyMaxBytes: FLEET_MAX_BYTES,
    response: fleetPlanSchema,
    handle: ({ api, call, body }) => api.fleet.plan(call, body),
  }),
  defineRoute("POST /api/fleet/apply", {
    access: "write:fleet",
    operation: "fleet.apply",
    summary: "Apply a fleet, all changes or none",
    body: fleetApplyInput,
    bodyMaxBytes: FLEET_MAX_BYTES,
    response: fleetPlanSchema,
    handle: ({ api, call, body }) => api.fleet.apply(call, body),
  }),
] as const;
