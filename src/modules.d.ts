// A YAML file is a module whose default export is the value in it; the build parses it.
declare module "*.yaml" {
  const value: import("./sim/scenario").Scenario;
  export default value;
}

// A worker that the build puts into the page itself.
declare module "*?worker&inline" {
  const InlineWorker: new () => Worker;
  export default InlineWorker;
}

// Style sheets are modules for their effect.
declare module "*.css";
