import { z } from "zod";
import { FLOW_LIFE_S } from "../../api/account/oidc.ts";
import { CALLBACK_PATH } from "../../api/account/oidc_login.ts";
import { answer } from "../../api/call/answer.ts";
import { joinHalves } from "../../api/account/login.ts";
import {
  accessSchema,
  codeSchema,
  loginAnswerSchema,
  loginSchema,
  oidcAnswerQuery,
  refreshSchema,
  returnPath,
  whoamiSchema,
} from "../../domain/account/login.ts";
import { invalid } from "../../domain/call/error.ts";
import { BrowserCookies, buildLoginResponse, checkOrigin, SESSION_HEADER } from "../browser.ts";
import { defineRoute } from "../route.ts";

export const authRoutes = [
  defineRoute("POST /api/auth/login", {
    access: "public",
    operation: "auth.login",
    summary: "Log in",
    description:
      "With `browser: true` the secret has two halves: a cookie that no script can read, and `session`, which the " +
      "page sends as `X-Svc-Session`. A browser can also log in with a code of `svc ctl console` or of an OpenID provider. " +
      "With the `X-Svc-Session` of another user's login, a code needs `replace: true`, else the answer is 409 and names both users.",
    body: loginSchema,
    response: loginAnswerSchema,
    handle: async ({ api, body, address, raw }) => {
      const scope = api.auth.getCookieScope();
      const cookies = new BrowserCookies(scope);
      if (body.browser) checkOrigin(raw, scope.publicUrl);
      const login = await api.auth.logIn(body, {
        address,
        flow: cookies.flow(raw),
        existing: readBrowserSecret(raw, cookies),
      });
      return "cookie" in login ? buildLoginResponse(login, cookies) : answer(login);
    },
  }),
  defineRoute("POST /api/auth/refresh", {
    access: "public",
    operation: "auth.refresh",
    summary: "Get a new access token",
    description: "A browser sends its cookie and `X-Svc-Session` instead of a refresh token.",
    body: refreshSchema,
    response: accessSchema,
    handle: async ({ api, body, raw }) => {
      const scope = api.auth.getCookieScope();
      const { secret, kind } = readSecret(raw, body.refresh_token, new BrowserCookies(scope));
      if (kind === "browser") checkOrigin(raw, scope.publicUrl);
      return await api.auth.refresh(secret, kind);
    },
  }),
  defineRoute("POST /api/auth/logout", {
    access: "public",
    operation: "auth.logout",
    summary: "Revoke a refresh token",
    description: "A browser sends its cookie and `X-Svc-Session` instead of a refresh token.",
    body: refreshSchema,
    status: 204,
    response: z.undefined(),
    handle: async ({ api, body, raw }) => {
      const scope = api.auth.getCookieScope();
      const cookies = new BrowserCookies(scope);
      const { secret, kind } = readSecret(raw, body.refresh_token, cookies);
      if (kind === "browser") checkOrigin(raw, scope.publicUrl);
      const done = await api.auth.logout(secret, kind);
      if (kind === "login") return done;
      return new Response(null, { status: 204, headers: { "set-cookie": cookies.setLogin("", 0) } });
    },
  }),
  defineRoute("GET /api/auth/whoami", {
    access: "token",
    operation: "auth.whoami",
    summary: "Get the caller and its scopes",
    response: whoamiSchema,
    handle: ({ api, call }) => api.auth.whoami(call),
  }),
  defineRoute("POST /api/auth/console", {
    access: "token",
    operation: "auth.console",
    summary: "Create a code that logs a browser in as the caller, valid once and for one minute",
    body: z.strictObject({}),
    status: 201,
    response: codeSchema,
    handle: ({ api, call }) => api.auth.createCode(call),
  }),
  defineRoute("GET /api/auth/oidc/start", {
    access: "public",
    operation: "auth.oidc_start",
    summary: "Redirect the browser to the OpenID provider",
    query: { return: returnPath },
    status: 303,
    response: z.undefined(),
    handle: async ({ api, query }) => {
      const { location, cookie } = await api.auth.beginOidc(query.return);
      return redirect(location, new BrowserCookies(api.auth.getCookieScope()).setFlow(cookie, FLOW_LIFE_S));
    },
  }),
  defineRoute(`GET ${CALLBACK_PATH}`, {
    access: "public",
    operation: "auth.oidc_callback",
    summary: "Finish a sign-in after the redirect from the OpenID provider",
    query: oidcAnswerQuery,
    status: 303,
    response: z.undefined(),
    handle: async ({ api, raw, address }) => {
      const cookie = new BrowserCookies(api.auth.getCookieScope()).flow(raw);
      return redirect(await api.auth.finishOidc(new URL(raw.url).search, cookie, address));
    },
  }),
] as const;

// The addresses of a sign-in contain codes, so no cache may store the responses.
function redirect(location: string, cookie?: string): Response {
  const headers = new Headers({ location, "cache-control": "no-store" });
  if (cookie !== undefined) headers.set("set-cookie", cookie);
  return new Response(null, { status: 303, headers });
}

// The secret of a login: a refresh token, or both halves from one browser.
function readSecret(
  request: Request,
  given: string | undefined,
  cookies: BrowserCookies,
): { secret: string; kind: "login" | "browser" } {
  if (given !== undefined) return { secret: given, kind: "login" };
  const secret = readBrowserSecret(request, cookies);
  if (secret === null) {
    throw invalid("refresh_token", "is missing. A browser sends its cookie and X-Svc-Session instead.");
  }
  return { secret, kind: "browser" };
}

function readBrowserSecret(request: Request, cookies: BrowserCookies): string | null {
  const session = request.headers.get(SESSION_HEADER);
  return session === null ? null : joinHalves(cookies.login(request) ?? "", session);
}
