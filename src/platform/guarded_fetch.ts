import { request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import {
  findCheckedAddresses,
  NotReachedError,
  RefusedAddressError,
  type ResolveName,
} from "../base/address.ts";
import { countBytes, GrowingBytes } from "../base/bytes.ts";

/** A request to a URL that a user or a remote party supplied. */
interface OutsideRequest {
  url: string;
  method?: "POST" | "GET";
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  timeoutMs: number;
  /** Limit of the response body in bytes. A larger one is an error. */
  answerMaxBytes: number;
  /** Permits private addresses. Only the configuration file can set it. */
  allowPrivate: boolean;
  signal?: AbortSignal;
  resolve?: ResolveName;
}

export interface OutsideAnswer {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
}

/** The connection broke before a whole response arrived. The request may have succeeded. */
export class NoAnswerError extends Error {}

/**
 * Sends a request to a URL from outside: resolves the name, checks every address and connects to a checked one, so that a
 * second DNS answer cannot redirect it. Follows no redirect. Throws RefusedAddress, NotReached or NoAnswer (contract 11).
 */
export async function callOutside(options: OutsideRequest): Promise<OutsideAnswer> {
  const url = URL.parse(options.url);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new RefusedAddressError("the address must start with https:// or http://");
  }
  if (url.username !== "" || url.password !== "") {
    throw new RefusedAddressError("the address must not contain a user name or a password");
  }
  const startedAt = performance.now();
  const [address] = await findCheckedAddresses(url.hostname.replace(/^\[(.*)\]$/, "$1"), options);
  const leftMs = Math.max(0, options.timeoutMs - (performance.now() - startedAt));
  return await send(url, address, options, leftMs);
}

function send(url: URL, address: string, options: OutsideRequest, leftMs: number): Promise<OutsideAnswer> {
  const { method = "POST", headers = {}, body, timeoutMs, answerMaxBytes, signal } = options;
  const isTls = url.protocol === "https:";
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return new Promise((resolve, reject) => {
    let isConnected = false;
    const fail = (error: unknown) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      const words = formatError(error);
      reject(isConnected ? new NoAnswerError(words) : new NotReachedError(words));
    };
    const request = (isTls ? tlsRequest : plainRequest)({
      host: address,
      port: url.port === "" ? (isTls ? 443 : 80) : Number(url.port),
      path: url.pathname + url.search,
      method,
      // A pooled connection might lead to an address that was not checked.
      agent: false,
      headers: {
        ...headers,
        host: url.host,
        ...(body === undefined ? {} : { "content-length": String(measureBody(body)) }),
      },
      ...(isTls ? { servername: isIP(host) === 0 ? host : "" } : {}),
    }, (message: IncomingMessage) => {
      readAll(message, answerMaxBytes).then((bytes) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        resolve({ status: message.statusCode ?? 0, headers: readHeaders(message), body: bytes });
      }, fail);
    });
    const abort = () => request.destroy(new Error("the request was cancelled"));
    const timer = setTimeout(
      () => request.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)),
      leftMs,
    );
    signal?.addEventListener("abort", abort, { once: true });
    request.on("socket", (socket) => {
      socket.once(isTls ? "secureConnect" : "connect", () => isConnected = true);
    });
    request.on("error", fail);
    // A protocol upgrade is not a response.
    request.on("upgrade", (message, socket) => {
      socket.destroy();
      fail(new Error(`the server sent status ${message.statusCode ?? 101}, which is not a response`));
    });
    if (signal?.aborted) abort();
    request.end(body);
  });
}

async function readAll(message: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const arrived = new GrowingBytes();
  for await (const chunk of message as AsyncIterable<Uint8Array>) {
    if (arrived.size + chunk.length > maxBytes) {
      message.destroy();
      throw new Error(`the answer is larger than ${maxBytes} bytes`);
    }
    arrived.append(chunk);
  }
  return arrived.view();
}

function readHeaders(message: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, String(value)]));
}

function measureBody(body: string | Uint8Array): number {
  return typeof body === "string" ? countBytes(body) : body.length;
}

function formatError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
