// The parser that bench/scan.ts compares with ships no types.
declare module "parse-prometheus-text-format" {
  export default function parse(text: string): { name: string; metrics: { value?: string }[] }[];
}
