// What the types promise; `tsc` is the judge of most of it.

import type { FastifyContextConfig, FastifyInstance, FastifyRequest } from "fastify";
import { describe, expectTypeOf, test } from "vitest";
import type {
  Admission,
  PlimsollInstance,
  PlimsollPluginOptions,
  RouteAdmission,
} from "../../src/fastify/index";
import type { FetchFunction } from "../../src/fetch/index";
import type { EndpointPool, Lease } from "../../src/index";

describe("Fastify's types", () => {
  test("have the decorators and the route's config", () => {
    expectTypeOf<FastifyInstance["plimsoll"]>().toEqualTypeOf<PlimsollInstance>();
    expectTypeOf<FastifyRequest["plimsoll"]>().toEqualTypeOf<Admission | null>();
    type Config = FastifyContextConfig["plimsoll"];
    expectTypeOf<Config>().toEqualTypeOf<false | RouteAdmission | undefined>();
  });

  test("let a handler use what the plugin gives", () => {
    expectTypeOf<Admission["lease"]>().toEqualTypeOf<Lease | undefined>();
    expectTypeOf<Admission["fetch"]>().toExtend<typeof globalThis.fetch>();
    expectTypeOf<typeof globalThis.fetch>().toExtend<FetchFunction>();
  });

  test("ask for the pool and nothing else", () => {
    expectTypeOf<{ pool: EndpointPool }>().toExtend<PlimsollPluginOptions>();
    // @ts-expect-error the pool is missing
    const wrong: PlimsollPluginOptions = {};
    expectTypeOf(wrong).toEqualTypeOf<PlimsollPluginOptions>();
  });
});
