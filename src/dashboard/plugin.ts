// The dashboard as a Fastify plugin: the page, its files and its events. It needs no framework on the page's
// side and no file at run time: the build puts the page into this package's code.

import { gunzipSync } from "node:zlib";
import type { FastifyInstance, FastifyReply } from "fastify";
import built from "../../build/dashboard.json";
import type { DashboardSource } from "./encoder";
import { DashboardFeed } from "./feed";

/** What the plugin is given. */
export interface DashboardOptions {
  readonly source: DashboardSource;
  /** Told when the source could not be read. */
  readonly onFault: (error: unknown) => void;
}

/** Nothing but the page's own files may run, and nobody may frame it. */
const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** A file of the page; its name changes with its content. */
interface BuiltFile {
  readonly name: string;
  readonly type: string;
  /** Compressed, in base64. */
  readonly gzip: string;
}

/** `/dashboard`, below the prefix of its registration. */
export async function dashboardRoutes(
  app: FastifyInstance,
  { source, onFault }: DashboardOptions,
): Promise<void> {
  const feed = new DashboardFeed(source, onFault);
  // Before the server stops listening: open streams would keep it from ending.
  app.addHook("preClose", (done) => {
    feed.close();
    done();
  });
  const config = { plimsoll: false as const }; // it is looked at most when the pool is full
  for (const file of built.files satisfies readonly BuiltFile[]) {
    const isPage = file.name === "";
    const lifetime = isPage ? "no-cache" : "public, max-age=31536000, immutable";
    const gzip = Buffer.from(file.gzip, "base64");
    app.get(`/dashboard${isPage ? "" : `/${file.name}`}`, { config }, (request, reply) => {
      reply.headers(HEADERS).type(file.type).header("cache-control", lifetime);
      return sendPacked(reply, gzip, request.headers["accept-encoding"]);
    });
  }
  app.get("/dashboard/", { config }, (_, reply) => reply.redirect("../dashboard", 308));
  // A HEAD request would listen for ever.
  app.get("/dashboard/events", { config, exposeHeadRoute: false }, (request, reply) => {
    if (feed.add(request.raw, reply.raw)) return reply.hijack();
    return reply.code(503).header("retry-after", "5").send({ message: "too many listeners" });
  });
}

function sendPacked(reply: FastifyReply, gzip: Buffer, accepted = ""): FastifyReply {
  reply.header("vary", "accept-encoding");
  if (!/\bgzip\b/.test(accepted)) return reply.send(gunzipSync(gzip));
  return reply.header("content-encoding", "gzip").send(gzip);
}
