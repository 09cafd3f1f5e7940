// A YAML file is a module whose default export is the value in it; the build parses it.
declare module "*.yaml" {
  const value: import("./sim/scenario").Scenario;
  export default value;
}
