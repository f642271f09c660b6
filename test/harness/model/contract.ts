import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { ROUTES } from "../../../src/http/app.ts";
import { buildOpenApiDocument } from "../../../src/http/openapi.ts";
import type { AnyRoute } from "../../../src/http/route.ts";
import { VERSION } from "../../../src/base/version.ts";

/** An operation of the document, as far as tests need it. */
export interface Operation {
  operationId: string;
  requestBody?: { content: Record<string, { schema: object }> };
  responses: Record<string, { content?: Record<string, { schema: object }> }>;
}

interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, { examples?: unknown[] }> };
}

let loaded: Promise<{ document: Document; ajv: Ajv2020 }> | null = null;

/** Returns this service's document, and a validator that has it registered as `api`. */
export function loadContract(): Promise<{ document: Document; ajv: Ajv2020 }> {
  return loaded ??= (async () => {
    const document = await buildOpenApiDocument(ROUTES, VERSION) as Document;
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(ajv);
    ajv.addFormat("binary", true);
    ajv.addSchema(document, "api");
    return { document, ajv };
  })();
}

const validators = new Map<string, ValidateFunction>();

async function loadValidator(pointer: string[]): Promise<ValidateFunction> {
  const path = pointer.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")))
    .join("/");
  const known = validators.get(path);
  if (known !== undefined) return known;
  const { ajv } = await loadContract();
  const made = ajv.compile({ $ref: `api#/${path}` });
  validators.set(path, made);
  return made;
}

interface Exchange {
  method: string;
  path: string;
  requestBody: unknown;
  status: number;
  contentType: string;
  responseBody: unknown;
}

/** Returns how an exchange violates the document, or "" if it doesn't (contract 5). */
export async function findBreach(exchange: Exchange): Promise<string> {
  const { method, status, contentType } = exchange;
  const route = (ROUTES as readonly AnyRoute[]).find((one) =>
    one.method === method && isMatch(one, exchange.path)
  );
  if (route === undefined) return "";
  const { document } = await loadContract();
  const path = route.path.replace(/:(\w+)/g, "{$1}");
  const operation = document.paths[path]?.[method.toLowerCase()];
  if (operation === undefined) return `the document does not know ${method} ${path}`;
  const at = ["paths", path, method.toLowerCase()];
  const response = operation.responses[String(status)];
  if (response === undefined) return `${method} ${path} answered ${status}, which is not documented`;
  const type = contentType.split(";")[0] ?? "";
  const known = response.content?.[type] ?? response.content?.["*/*"];
  if (response.content !== undefined && known === undefined && method !== "HEAD") {
    return `${method} ${path} answered ${status} as ${type}, documented are ${Object.keys(response.content)}`;
  }
  if (/json$/.test(type) && response.content?.[type] !== undefined) {
    const said = await findFault(
      [...at, "responses", String(status), "content", type, "schema"],
      exchange.responseBody,
    );
    if (said !== "") return `${method} ${path} ${status}: the answer ${said}`;
  }
  const takes = operation.requestBody?.content["application/json"];
  if (status < 300 && takes !== undefined && exchange.requestBody !== undefined) {
    const said = await findFault(
      [...at, "requestBody", "content", "application/json", "schema"],
      exchange.requestBody,
    );
    if (said !== "") return `${method} ${path}: the accepted request ${said}`;
  }
  return "";
}

async function findFault(pointer: string[], value: unknown): Promise<string> {
  const validate = await loadValidator(pointer);
  if (validate(value)) return "";
  const [first] = validate.errors ?? [];
  return `${first?.instancePath || "/"} ${first?.message} ${JSON.stringify(first?.params)}`;
}

const patterns = new Map<string, RegExp>();

function isMatch(route: AnyRoute, path: string): boolean {
  const pattern = patterns.get(route.path) ?? new RegExp(`^${route.path.replace(/:\w+/g, "[^/]+")}$`);
  patterns.set(route.path, pattern);
  // In /api/messages/inbound, "inbound" is not the id of a message.
  return pattern.test(path);
}
