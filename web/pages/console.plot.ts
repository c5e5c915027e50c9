/** The library that draws, in a file of its own: only the screens with a chart load it. */
export { default as UPlot } from "uplot";
