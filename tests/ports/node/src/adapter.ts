// The adapter: the port behind the protocol of spec/port-protocol.md.
import { createInterface } from "node:readline";
import { Redis } from "ioredis";

import { InvalidArgument, type Lease, Queue } from "./queue.js";
import { type Argument, type Name, call } from "./scripts.js";

type Tagged = { utf8: string } | { b64: string };
type Request = Record<string, unknown> & { id: number; op: string };

const HELLO = {
  protocol: 1,
  name: "redisq-node",
  language: "TypeScript",
  version: "0.1.0",
  capabilities: [
    "atomic-nack",
    "park-revokes",
    "server-clock",
    "window-repair",
    "drain-at-maxmemory",
    "checked-arguments",
    "arrival-order",
    "safe-write-order",
    "tier-recovery",
    "extend",
  ],
  takes_now_ms: true,
};
// Arguments in the order of each script's ARGV.
const ARGV: Record<Name, string[]> = {
  publish: ["prefix", "group", "payload", "priority", "score_ms"],
  claim: ["prefix", "now_ms", "visibility_ms", "token", "candidates", "min_priority"],
  ack: ["prefix", "group", "token", "now_ms"],
  nack: ["prefix", "group", "token", "now_ms", "delay_ms"],
  extend: ["prefix", "group", "token", "now_ms", "visibility_ms"],
};
const TEXTS = new Set(["prefix", "group", "payload", "token"]);

let client: Redis | undefined;
let prefix: Buffer = Buffer.from("redisq");

function untag(value: unknown): Buffer {
  const tagged = value as Tagged;
  return "b64" in tagged ? Buffer.from(tagged.b64, "base64") : Buffer.from(tagged.utf8);
}

const tag = (data: Buffer): Tagged => ({ b64: data.toString("base64") });

function queue(request: Request, options: object = {}): Queue {
  const now = (request.now_ms ?? request.score_ms) as number | null | undefined;
  const clock = now === null || now === undefined ? undefined : () => now;
  return new Queue(connected(), { prefix, ...(clock && { clock }), ...options });
}

function connected(): Redis {
  if (client === undefined) {
    throw new Error("open comes first");
  }
  return client;
}

const lease = (request: Request): Pick<Lease, "group" | "token"> => ({
  group: untag(request.group),
  token: untag(request.token).toString(),
});

/** What no signature of the port can say goes to the script as it is. */
function raw(request: Request): Argument[] | undefined {
  if (Array.isArray(request.argv)) {
    return request.argv.map(untag);
  }
  const names = ARGV[request.op as Name];
  const asIs = names.some((name) => !TEXTS.has(name) && typeof request[name] === "object" && request[name] !== null);
  const ownToken = request.op === "claim" && ["", "parked"].includes(untag(request.token).toString("latin1"));
  if (!asIs && !ownToken) {
    return undefined;
  }
  return names.map((name) => {
    const value = request[name];
    return value === null ? "" : typeof value === "number" ? String(value) : untag(value);
  });
}

async function script(request: Request): Promise<unknown> {
  const argv = raw(request);
  if (argv !== undefined) {
    const reply = await call(connected(), request.op as Name, Buffer.concat([prefix, Buffer.from(":prio")]), argv);
    return Array.isArray(reply) ? { group: tag(reply[0]), payload: tag(reply[1]) } : reply;
  }
  switch (request.op) {
    case "publish": {
      const newGroups = request.score_ms === 0 ? "first" : "arrival";
      const { group, payload, priority } = request;
      return queue(request, { newGroups }).publish(untag(group), untag(payload), priority as number);
    }
    case "claim": {
      const { visibility_ms, min_priority, candidates } = request as Record<string, number>;
      const found = await queue(request, { candidates }).claim({ visibilityMs: visibility_ms, minPriority: min_priority });
      return found && { group: tag(found.group), payload: tag(found.payload), token: { utf8: found.token } };
    }
    case "ack":
      return Number(await queue(request).ack(lease(request)));
    case "nack":
      return Number(await queue(request).nack(lease(request), request.delay_ms as number));
    default:
      return Number(await queue(request).extend(lease(request), request.visibility_ms as number));
  }
}

async function answer(request: Request): Promise<object> {
  if (request.op === "hello") {
    return { ok: HELLO };
  }
  if (request.op === "open" || request.op === "close") {
    client?.disconnect();
    client = request.op === "open" ? new Redis(request.url as string) : undefined;
    prefix = request.op === "open" ? untag(request.prefix) : prefix;
    return { ok: null };
  }
  if (!(request.op in ARGV)) {
    return { unsupported: `no such operation: ${request.op}` };
  }
  return { ok: await script(request) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request;
  const said = await answer(request).catch((error: Error) =>
    error instanceof InvalidArgument
      ? { error: { code: "REDISQ_BADARG", arguments: [error.argument], message: error.message } }
      : { error: { code: error.message.split(" ", 1)[0] ?? "ERR", message: error.message } },
  );
  process.stdout.write(`${JSON.stringify({ id: request.id, ...said })}\n`);
}
client?.disconnect();
