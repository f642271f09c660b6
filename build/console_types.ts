// Writes the types of the REST API from the OpenAPI document to .cache/console/schema.ts, for the console.
import { dirname, join } from "node:path";
import openapiTypescript, { astToString } from "openapi-typescript";
import { VERSION } from "../src/base/version.ts";
import { ROUTES } from "../src/http/app.ts";
import { buildOpenApiDocument } from "../src/http/openapi.ts";
import { ROOT } from "./lock.ts";

const file = join(ROOT, ".cache/console/schema.ts");
const document = JSON.stringify(await buildOpenApiDocument(ROUTES, VERSION));
// A request may omit a field that has a default.
const types = astToString(await openapiTypescript(document, { defaultNonNullable: false }));
await Deno.mkdir(dirname(file), { recursive: true });
if (await Deno.readTextFile(file).catch(() => "") !== types) await Deno.writeTextFile(file, types);
