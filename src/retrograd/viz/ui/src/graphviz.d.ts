declare module "virtual:graphviz" {
  const packed: string; // the binary, compressed, in base64: graphviz.mjs makes it
  export default packed;
}
