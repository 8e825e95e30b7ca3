// The five scripts: read once, called by digest, sent whole where the server has not seen them.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";

export const NAMES = ["publish", "claim", "ack", "nack", "extend"] as const;
export type Name = (typeof NAMES)[number];
export type Argument = string | Buffer;
export type Reply = number | null | [Buffer, Buffer];

interface Script {
  source: string;
  sha: string;
}

const SCRIPTS = Object.fromEntries(NAMES.map((name) => [name, read(name)])) as Record<Name, Script>;

function read(name: Name): Script {
  const source = readFileSync(new URL(`lua/${name}.lua`, import.meta.url), "utf8");
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

/** Calls a script with its raw ARGV. Replies are undecoded; errors are the server's. */
export async function call(client: Redis, name: Name, route: Argument, argv: Argument[]): Promise<Reply> {
  const { source, sha } = SCRIPTS[name];
  try {
    return (await client.callBuffer("EVALSHA", sha, 1, route, ...argv)) as Reply;
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) {
      throw error;
    }
    return (await client.callBuffer("EVAL", source, 1, route, ...argv)) as Reply;
  }
}
