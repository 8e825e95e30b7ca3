// A queue with message groups on plain Redis: first in first out, one message in flight per group.
import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";

import { type Argument, type Name, type Reply, call } from "./scripts.js";

export type Bytes = string | Buffer;

/** An argument that the queue does not take; thrown before anything is sent. */
export class InvalidArgument extends RangeError {
  /** `argument` is the name of the wire: K, px, delay … */
  constructor(
    readonly argument: string,
    message: string,
  ) {
    super(`${argument}: ${message}`);
    this.name = "InvalidArgument";
  }
}

/** The right to one message of a group, until `ack`, `nack` or the end of its visibility. */
export interface Lease {
  readonly group: Buffer;
  readonly payload: Buffer;
  readonly token: string;
}

export interface QueueOptions {
  /** Begins every key. A hash tag such as `{orders}` keeps it in one slot of a cluster. Default: `redisq`. */
  prefix?: Bytes;
  /** Epoch milliseconds; default: the server's clock. */
  clock?: () => number;
  /** The entries of a page of the window, 1 to 99. Default: 8. */
  candidates?: number;
  /** Where a new group starts: before every served one, or at its arrival. Default: `first`. */
  newGroups?: "first" | "arrival";
}

export interface ClaimOptions {
  /** How long the lease lasts, in milliseconds. Default: 30000. */
  visibilityMs?: number;
  /** The lowest priority looked at. Default: 0. */
  minPriority?: number;
}

const LONGEST_MS = 10 * 365 * 24 * 3600 * 1000;

/** A queue over a client that is handed in, and stays the caller's. */
export class Queue {
  private readonly prefix: Buffer;
  private readonly route: Buffer;
  private readonly clock: (() => number) | undefined;
  private readonly candidates: string;
  private readonly arrival: boolean;

  constructor(
    private readonly client: Redis,
    options: QueueOptions = {},
  ) {
    this.prefix = bytes("prefix", options.prefix ?? "redisq");
    this.route = Buffer.concat([this.prefix, Buffer.from(":prio")]);
    this.clock = options.clock;
    this.candidates = String(integer("K", options.candidates ?? 8, 1, 99));
    this.arrival = options.newGroups === "arrival";
  }

  /** Appends a message to its group; resolves to the number of messages the group then holds. */
  async publish(group: Bytes, payload: Bytes, priority = 0): Promise<number> {
    const score = this.arrival ? this.now("score") : "0";
    const tier = String(Math.min(4, Math.max(0, integer("priority", priority))));
    return (await this.call("publish", bytes("group", group), Buffer.from(payload), tier, score)) as number;
  }

  /** Leases the oldest message of a group that is due and free; `null` if there is none. */
  async claim(options: ClaimOptions = {}): Promise<Lease | null> {
    const token = randomUUID();
    const px = milliseconds("px", options.visibilityMs ?? 30_000, 1);
    const tier = String(Math.min(4, Math.max(0, integer("min_priority", options.minPriority ?? 0))));
    const reply = (await this.call("claim", this.now(), px, token, this.candidates, tier)) as [Buffer, Buffer] | null;
    return reply && { group: reply[0], payload: reply[1], token };
  }

  /** The message is done: removes it. `false` if the lease was lost. */
  async ack(lease: Pick<Lease, "group" | "token">): Promise<boolean> {
    return (await this.settle("ack", lease)) === 1;
  }

  /** Gives the message back: it is retried first, at once or after `delayMs`. `false` if the lease was lost. */
  async nack(lease: Pick<Lease, "group" | "token">, delayMs = 0): Promise<boolean> {
    return (await this.settle("nack", lease, milliseconds("delay", delayMs, 0))) === 1;
  }

  /** Renews the lease: it ends `visibilityMs` from now. `false` if it was lost. */
  async extend(lease: Pick<Lease, "group" | "token">, visibilityMs = 30_000): Promise<boolean> {
    return (await this.settle("extend", lease, milliseconds("px", visibilityMs, 1))) === 1;
  }

  private settle(name: Name, lease: Pick<Lease, "group" | "token">, ...rest: Argument[]): Promise<Reply> {
    return this.call(name, bytes("group", lease.group), bytes("token", lease.token), this.now(), ...rest);
  }

  private call(name: Name, ...argv: Argument[]): Promise<Reply> {
    return call(this.client, name, this.route, [this.prefix, ...argv]);
  }

  private now(argument = "now"): string {
    return this.clock === undefined ? "" : milliseconds(argument, this.clock(), 0);
  }
}

function bytes(argument: string, value: Bytes): Buffer {
  if (value.length === 0) {
    throw new InvalidArgument(argument, "must not be empty");
  }
  return Buffer.from(value);
}

function integer(argument: string, value: number, least = -Infinity, most = Infinity): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new InvalidArgument(argument, `must be an integer from ${least} to ${most}, not ${value}`);
  }
  return value;
}

function milliseconds(argument: string, value: number, least: number): string {
  return String(integer(argument, value, least, ["now", "score"].includes(argument) ? 1e15 - 1 : LONGEST_MS));
}
