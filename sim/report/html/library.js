// What the pages use of Apache ECharts; bundle.mjs packs this and what it needs, a third less than the whole library.
import { BarChart, CustomChart, GraphChart, HeatmapChart, LineChart, ParallelChart, ScatterChart } from "echarts/charts";
import { DataZoomInsideComponent, DataZoomSliderComponent, GridComponent, LegendScrollComponent, MarkAreaComponent, ParallelComponent,
  TooltipComponent } from "echarts/components";
import { use } from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";

use([BarChart, CustomChart, GraphChart, HeatmapChart, LineChart, ParallelChart, ScatterChart]);
use([DataZoomInsideComponent, DataZoomSliderComponent, GridComponent, LegendScrollComponent, MarkAreaComponent, ParallelComponent, TooltipComponent]);
use([CanvasRenderer, SVGRenderer]);
export { init } from "echarts/core";
