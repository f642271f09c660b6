import { z } from "zod";
import {
  budgetCreateSchema,
  budgetLiftSchema,
  budgetListQuery,
  budgetSchema,
  budgetUpdateSchema,
} from "../../domain/workers/budget.ts";
import { deletedSchema } from "../../domain/call/deleted.ts";
import { id } from "../../domain/call/field.ts";
import { defineRoute } from "../route.ts";

export const budgetRoutes = [
  defineRoute("GET /api/budgets", {
    access: "read:budgets",
    operation: "budget.list",
    summary: "List budgets with their usage, newest first",
    query: budgetListQuery,
    response: z.array(budgetSchema),
    handle: ({ api, query }) => api.budget.list(query),
  }),
  defineRoute("POST /api/budgets", {
    access: "write:budgets",
    operation: "budget.create",
    summary: "Create a budget, effective immediately and including earlier usage",
    body: budgetCreateSchema,
    status: 201,
    response: budgetSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.budget.create(call, body),
  }),
  defineRoute("GET /api/budgets/:id", {
    access: "read:budgets",
    operation: "budget.get",
    summary: "Get a budget with its usage",
    params: { id },
    response: budgetSchema,
    handle: ({ api, params }) => api.budget.get(params.id),
  }),
  defineRoute("PUT /api/budgets/:id", {
    access: "write:budgets",
    operation: "budget.update",
    summary: "Change a budget; absent fields stay as they are",
    params: { id },
    body: budgetUpdateSchema,
    response: budgetSchema,
    handle: ({ api, call, params, body }) => api.budget.update(call, params.id, body),
  }),
  defineRoute("DELETE /api/budgets/:id", {
    access: "write:budgets",
    operation: "budget.delete",
    summary: "Delete a budget; the work that it blocked continues",
    params: { id },
    response: deletedSchema,
    handle: ({ api, call, params }) => api.budget.delete(call, params.id),
  }),
  defineRoute("POST /api/budgets/:id/lift", {
    access: "write:budgets",
    operation: "budget.lift",
    summary: "Suspend a budget for a while",
    params: { id },
    body: budgetLiftSchema,
    response: budgetSchema,
    handle: ({ api, call, params, body }) => api.budget.lift(call, params.id, body),
  }),
] as const;
