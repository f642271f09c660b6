import { join } from "node:path";
import { expect, it } from "vitest";
import { loadConfig } from "../../src/config/schema.ts";
import { createTempDir } from "../harness/service/process.ts";

async function findFault(yaml: string): Promise<string> {
  await using folder = await createTempDir();
  const path = join(folder.path, "config.yaml");
  await Deno.writeTextFile(path, yaml);
  return await loadConfig(path, {}).then(
    () => "",
    (error: Error) => error.message.replace(/^.*config\.yaml:(\d+:\d+:)? /, ""),
  );
}

const HTTP =
  'kind: http, secret: k, upstream: "https://a.example", header: "x-key: {secret}", allow: ["GET /**"]';

const CASES: readonly (readonly [yaml: string, fault: string | RegExp])[] = [
  [`gateways: {a: {kind: anthropic, secret: k}, o: {kind: openai, secret: k}, h: {${HTTP}}}`, ""],
  [
    "gateways: {a: {kind: anthropic, secret: k, upstream: 'http://10.0.0.1:8000/x', allow: ['POST /v1/files']}}",
    "",
  ],
  ["gateways: {A: {kind: anthropic, secret: k}}", /^gateways\.A: a gateway's name must be/],
  ["gateways: {a: {kind: anthropic}}", /^gateways\.a\.secret/],
  [
    "gateways: {a: {kind: anthropic, secret: 'sk ant'}}",
    /^gateways\.a\.secret: must be the name of a secret/,
  ],
  ["gateways: {a: {kind: http, secret: k}}", /^gateways\.a\.upstream: is required for kind http$/],
  ["gateways: {a: {kind: openai, secret: k, upstream: 'ftp://a'}}", /^gateways\.a\.upstream: must be a URL/],
  [
    "gateways: {a: {kind: openai, secret: k, upstream: 'https://u:p@a'}}",
    /^gateways\.a\.upstream: must be a host/,
  ],
  [
    "gateways: {a: {kind: openai, secret: k, upstream: 'https://a/?x=1'}}",
    /^gateways\.a\.upstream: must be a host/,
  ],
  [
    "gateways: {a: {kind: openai, secret: k, header: 'x-key: k'}}",
    /^gateways\.a\.header: must be a name and a value/,
  ],
  [
    "gateways: {a: {kind: openai, secret: k, header: 'host: {secret}'}}",
    /^gateways\.a\.header: cannot be host/,
  ],
  [`gateways: {a: {${HTTP.replace('"GET /**"', "")}}}`, /^gateways\.a\.allow: is required for kind http/],
  ...[
    "get /a",
    "GET a",
    "GET /a/**/b",
    "GET /a//b",
    "GET /a/../b",
    "GET /a%2fb",
    "GET /a?b",
    "GET /a*",
    "GET",
  ]
    .map((rule) =>
      [`gateways: {a: {kind: openai, secret: k, allow: ['${rule}']}}`, /^gateways\.a\.allow: "/] as const
    ),
  ["engines: {claude: {gateway: a}}\ngateways: {a: {kind: anthropic, secret: k}}", ""],
  [
    "engines: {claude: {gateway: b}}",
    /^engines\.claude\.gateway: no gateway is called "b"\. Known gateways: none\.$/,
  ],
  [
    "engines: {claude: {gateway: a}}\ngateways: {a: {kind: openai, secret: k}}",
    /^engines\.claude\.gateway: claude needs a gateway of kind anthropic, and a has kind openai$/,
  ],
  [
    "engines: {x: {kind: command, command: cat, gateway: a}}\ngateways: {a: {kind: openai, secret: k}}",
    /^engines\.x\.gateway: command has no setting for a gateway/,
  ],
  [
    "engines: {claude: {gateway: a, env: {ANTHROPIC_API_KEY: k}}}\ngateways: {a: {kind: anthropic, secret: k}}",
    /^engines\.claude\.env: cannot contain ANTHROPIC_API_KEY: the gateway a has the key$/,
  ],
  [
    "engines: {claude: {gateway: a, pass_env: [CLAUDE_CODE_OAUTH_TOKEN]}}\ngateways: {a: {kind: anthropic, secret: k}}",
    /^engines\.claude\.pass_env: cannot contain CLAUDE_CODE_OAUTH_TOKEN/,
  ],
];

it.each(CASES)("gateways: %s", async (yaml, fault) => {
  const found = await findFault(yaml);
  if (typeof fault === "string") expect(found).toBe(fault);
  else expect(found).toMatch(fault);
});
