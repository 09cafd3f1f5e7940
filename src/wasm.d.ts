// The build embeds the kernel as base64 text (tsup and vitest both do).
declare module "*/kernel.wasm" {
  const base64: string;
  export default base64;
}
