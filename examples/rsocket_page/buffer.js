// rsocket-js was written for Node, whose Buffer it expects everywhere.
export { Buffer } from "buffer";
