"""HDInsight as a compute target."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

HDInsightAttachConfiguration = _stand_in("azureml.core.compute.hdinsight.HDInsightAttachConfiguration")
HDInsightCompute = _stand_in("azureml.core.compute.HDInsightCompute")
